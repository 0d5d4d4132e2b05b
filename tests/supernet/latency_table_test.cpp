#include "supernet/latency_table.h"

#include "supernet/expand.h"
#include "supernet/search_space.h"
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
  LatencyTable table = hand_made();
  EXPECT_DOUBLE_EQ(table.original(), 10);
  EXPECT_DOUBLE_EQ(table.predict({.choices = {0, 0, 0}}), 10);
  EXPECT_DOUBLE_EQ(table.predict({.choices = {1, 1, 0}}), 6);
  EXPECT_DOUBLE_EQ(table.predict({.choices = {1, 2, Variant::kCovered}}), 6);
  EXPECT_DOUBLE_EQ(table.predict({.choices = {1, 0, 0}, .exit = 0}), 1.5);
  table.correction = 2;
  table.border = 1.5;
  EXPECT_DOUBLE_EQ(table.original(), 2 * (1.5 + 2.5 + 1.5));
  EXPECT_DOUBLE_EQ(table.predict({.choices = {1, 1, 0}}), 2 * (0 + 0.5 + 1.5));
}

TEST(LatencyTable, LearnsWhatWholeVariantsSaveAtTheirBorders) {
  LatencyTable table = hand_made();
  for (const std::vector<int>& choices :
       {std::vector<int>{0, 0, 0}, std::vector<int>{0, 1, 0}, std::vector<int>{0, 2, -1}}) {
    LatencyTable truth = hand_made();
    truth.border = 0.6;
    truth.correction = 1.1;
    table.samples.push_back({{.choices = choices}, truth.predict({.choices = choices})});
  }
  fit_correction(table);
  EXPECT_NEAR(table.border, 0.6, 1e-9);
  EXPECT_NEAR(table.correction, 1.1, 1e-9);
}

TEST(LatencyTable, OneSampleScalesEverything) {
  LatencyTable table = hand_made();
  table.samples.push_back({{.choices = {0, 0, 0}}, 5});
  fit_correction(table);
  EXPECT_DOUBLE_EQ(table.original(), 5);
  EXPECT_DOUBLE_EQ(table.border, 0);
}

TEST(LatencyTable, MeasuresEveryAlternativeAndSearchTakesItUp) {
  auto model = test::load_model("resnet20-cifar10");
  if (!model) model = test::load_model("builtin:resnet8");
  ASSERT_TRUE(model);
  const auto elastic = expand(model->graph, model->params);
  ASSERT_TRUE(elastic.ok()) << elastic.status().message();
  int last = 0, count = 0;
  LatencyOptions options{.measure = {.seconds = 0.001, .min_runs = 3}, .samples = 3};
  options.progress = [&](int done, int all) {
    EXPECT_EQ(done, last + 1);
    last = done;
    count = all;
  };
  const auto table = measure_latency_table(*elastic, test::cpu_backends(), options);
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ(last, count);
  EXPECT_EQ(table->samples.size(), 3u);
  EXPECT_TRUE(table->check(*elastic).ok());
  for (const auto& block : table->blocks) {
    for (const double seconds : block) EXPECT_GT(seconds, 0);
  }
  EXPECT_GT(table->correction, 0);
  const auto space = make_search_space(*elastic, *table);
  ASSERT_TRUE(space.ok()) << space.status().message();
  Random random(1);
  for (int i = 0; i < 20; ++i) {
    const Variant variant = random_variant(*space, random);
    EXPECT_NEAR(space->cost(variant).seconds, table->predict(variant), 1e-12);
  }
  EXPECT_NEAR(space->cost(space->original()).seconds, table->original(), 1e-12);
  const auto whole =
      measure_variant(*elastic, random_variant(*space, random), test::cpu_backends(), options.measure);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_GT(*whole, 0);
  LatencyTable other = *table;
  other.blocks.pop_back();
  EXPECT_EQ(make_search_space(*elastic, other).status().code(), Code::kInvalidArgument);
}

TEST(LatencyTable, StopsWhenAsked) {
  auto model = test::load_model("resnet20-cifar10");
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

}  // namespace
}  // namespace limber
