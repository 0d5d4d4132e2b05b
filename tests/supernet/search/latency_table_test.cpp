#include "variant/latency_table.h"

#include <algorithm>

#include "supernet/expand/expand.h"
#include "supernet/search/search_space.h"
#include "tests/supernet/models.h"

namespace limber {
namespace {

LatencyTable hand_made() {
  LatencyTable table;
  table.blocks = {{3, 1}, {4, 2, 5}, {3}};
  table.exits = {{.after = 1, .seconds = 0.5}};
  return table;
}

TEST(LatencyTable, AddsUpWhatAVariantChooses) {
  const LatencyTable table = hand_made();
  EXPECT_DOUBLE_EQ(table.original(), 10);
  EXPECT_DOUBLE_EQ(table.predict({.choices = {0, 0, 0}}), 10);
  EXPECT_DOUBLE_EQ(table.predict({.choices = {1, 1, 0}}), 6);
  EXPECT_DOUBLE_EQ(table.predict({.choices = {1, 2, Variant::kCovered}}), 6);
  EXPECT_DOUBLE_EQ(table.predict({.choices = {1, 0, 0}, .exit = 0}), 1.5);
}

TEST(LatencyTable, MeasuresEveryAlternativeAndSearchTakesItUp) {
  auto model = test::load_model("resnet20");
  if (!model) model = test::load_model("builtin:resnet8");
  ASSERT_TRUE(model);
  const auto elastic = expand(model->graph, model->params);
  ASSERT_TRUE(elastic.ok()) << elastic.status().message();
  int last = 0, count = 0;
  LatencyOptions options{.measure = {.seconds = 0.001, .min_rounds = 1}, .cover = 1};
  options.progress = [&](int done, int all) {
    EXPECT_EQ(done, last + 1);
    last = done;
    count = all;
  };
  const auto table = measure_latency_table(*elastic, test::cpu_backends(), options);
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ(last, count);
  // Every alternative is in one of the variants, the original is the first.
  EXPECT_EQ(table->samples.size(), static_cast<size_t>(count));
  EXPECT_EQ(table->samples[0].variant, original_variant(*elastic));
  for (size_t b = 0; b < elastic->blocks.size(); ++b) {
    for (size_t c = 0; c < elastic->blocks[b].alternatives.size(); ++c)
      EXPECT_TRUE(
          std::any_of(table->samples.begin(), table->samples.end(),
                      [&](const auto& sample) { return sample.variant.choices[b] == static_cast<int>(c); }))
          << b << " " << c;
  }
  EXPECT_TRUE(table->check(*elastic).ok());
  for (const auto& block : table->blocks) {
    EXPECT_GT(block[0], 0);
    for (const double seconds : block) EXPECT_GE(seconds, 0);  // a skipped block is nothing
  }
  EXPECT_NEAR(table->original() / table->samples[0].seconds, 1, 0.5);
  const auto space = make_search_space(*elastic, *table);
  ASSERT_TRUE(space.ok()) << space.status().message();
  Random random(1);
  for (int i = 0; i < 20; ++i) {
    const Variant variant = random_variant(*space, random);
    EXPECT_NEAR(space->cost(variant).seconds, table->predict(variant), 1e-12);
  }
  EXPECT_NEAR(space->cost(space->original()).seconds, table->original(), 1e-12);
  const std::vector<Variant> two = {space->original(), random_variant(*space, random)};
  const auto whole = measure_variants(*elastic, two, test::cpu_backends(), options.measure);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  ASSERT_EQ(whole->size(), 2u);
  EXPECT_GT((*whole)[1], 0);
  LatencyTable other = *table;
  other.blocks.pop_back();
  EXPECT_EQ(make_search_space(*elastic, other).status().code(), Code::kInvalidArgument);
}

TEST(LatencyTable, StopsWhenAsked) {
  auto model = test::load_model("resnet20");
  if (!model) model = test::load_model("builtin:resnet8");
  ASSERT_TRUE(model);
  const auto elastic = expand(model->graph, model->params, {.operators = {"shrink50"}});
  ASSERT_TRUE(elastic.ok()) << elastic.status().message();
  const std::atomic<bool> stop = true;
  LatencyOptions options;
  options.stop = &stop;
  EXPECT_EQ(measure_latency_table(*elastic, test::cpu_backends(), options).status().code(),
            Code::kResourceExhausted);
}

// Exits are in variants of their own, and no alternative lies across one.
TEST(LatencyTable, MeasuresExits) {
  auto model = test::load_model("builtin:resnet8");
  ASSERT_TRUE(model);
  auto elastic = expand(model->graph, model->params);
  ASSERT_TRUE(elastic.ok()) << elastic.status().message();
  const size_t after = elastic->blocks.size() - 1;
  elastic->exits.push_back({"last", static_cast<int>(after), elastic->blocks[after].alternatives[0].graph});
  const auto table = measure_latency_table(*elastic, test::cpu_backends(),
                                           {.measure = {.seconds = 0.001, .min_rounds = 1}, .cover = 2});
  ASSERT_TRUE(table.ok()) << table.status().message();
  ASSERT_EQ(table->exits.size(), 1u);
  EXPECT_EQ(table->exits[0].after, static_cast<int>(after));
  EXPECT_GT(table->exits[0].seconds, 0);
  Variant early = original_variant(*elastic);
  early.exit = 0;
  EXPECT_LT(table->predict(early), 2 * table->original());
}

}  // namespace
}  // namespace limber
