#include "supernet/expand/own_copy.h"

#include "supernet/expand/expand.h"
#include "supernet/operators/work.h"
#include "supernet/search/search_space.h"
#include "tests/supernet/models.h"
#include "variant/latency_table.h"

namespace limber {
namespace {

ElasticModel shrinkable() {
  auto builtin = make_builtin("resnet8");
  EXPECT_TRUE(builtin.ok()) << builtin.status().message();
  auto model = expand(builtin->graph, builtin->params, {.operators = {"shrink50"}});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *std::move(model);
}

// The first block that has an alternative, with it.
Variant with_one_change(const ElasticModel& model) {
  Variant variant = original_variant(model);
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    if (model.blocks[b].alternatives.size() < 2) continue;
    variant.choices[b] = 1;
    break;
  }
  return variant;
}

void expect_same_answers(const ElasticModel& model, const Variant& a, const Variant& b) {
  const Tensor left = test::run_graph(*materialize(model, a), model.params);
  const Tensor right = test::run_graph(*materialize(model, b), model.params);
  ASSERT_EQ(left.bytes(), right.bytes());
  for (size_t i = 0; i < left.data<float>().size(); ++i)
    EXPECT_EQ(left.data<float>()[i], right.data<float>()[i]);
}

TEST(OwnCopies, StandForTheOriginalsUntilTrained) {
  ElasticModel model = shrinkable();
  const std::vector<Variant> variants = {with_one_change(model), with_one_change(model)};
  const auto copied = copy_originals(model, variants, 100);
  ASSERT_TRUE(copied.ok()) << copied.status().message();
  ASSERT_TRUE(check_elastic(model).ok()) << check_elastic(model).message();
  ASSERT_EQ(copied->size(), variants.size());
  for (size_t v = 0; v < variants.size(); ++v) {
    const Variant& variant = (*copied)[v];
    ASSERT_TRUE(check_variant(model, variant).ok());
    expect_same_answers(model, variant, variants[v]);
    bool changed = false;
    for (size_t b = 0; b < variant.choices.size(); ++b) {
      EXPECT_EQ(variant.choices[b] == 0, !changed && variants[v].choices[b] == 0) << b;
      changed = changed || variants[v].choices[b] != 0;
    }
  }
  // Each has copies of its own.
  const size_t last = model.blocks.size() - 1;
  EXPECT_NE((*copied)[0].choices[last], (*copied)[1].choices[last]);
  EXPECT_TRUE(is_copy(model.blocks[last].alternatives[1]));
  EXPECT_FALSE(is_copy(model.blocks[last].alternatives[0]));
}

// What a folder holds must not come to mean another alternative.
TEST(OwnCopies, AStoredVariantMeansTheSameWhenTheyCome) {
  ElasticModel model = shrinkable();
  Block& last = model.blocks.back();
  Alternative tuned{.name = std::string(kTunedAlternative), .error = kCopyError};
  tuned.graph = *own_copy(last, kTunedAlternative, *model.params);
  last.alternatives.push_back(std::move(tuned));
  Variant for_exits = original_variant(model);
  for_exits.choices.back() = static_cast<int>(last.alternatives.size()) - 1;
  const std::string stored = print(model, for_exits);
  ASSERT_TRUE(copy_originals(model, std::vector{with_one_change(model)}, 100).ok());
  const auto now = parse_variant(model, stored);
  ASSERT_TRUE(now.ok()) << now.status().message();
  EXPECT_EQ(last.alternatives[static_cast<size_t>(now->choices.back())].name, kTunedAlternative);
}

TEST(OwnCopies, AreMadeOnce) {
  ElasticModel model = shrinkable();
  const auto first = copy_originals(model, std::vector{with_one_change(model)}, 100);
  ASSERT_TRUE(first.ok());
  const size_t names = model.params->names().size();
  const auto again = copy_originals(model, *first, 100);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *first);
  EXPECT_EQ(model.params->names().size(), names);
}

TEST(OwnCopies, StayWithinTheSizeLimit) {
  const std::vector<double> limits = {1, 1.7, 2.1};
  for (const double limit : limits) {
    ElasticModel model = shrinkable();
    const auto count = [&] {
      double sum = 0;
      for (const std::string& name : model.params->names())
        sum += static_cast<double>(model.params->type(name)->shape.elements());
      return sum;
    };
    const double before = count(), base = static_cast<double>(parameter_elements(model.base));
    const Variant variant = with_one_change(model);
    const auto copied = copy_originals(model, std::vector{variant}, limit);
    ASSERT_TRUE(copied.ok());
    EXPECT_LE(count(), std::max(before, limit * base)) << limit;
    if (limit * base <= before) {
      EXPECT_EQ(copied->front(), variant);
    }
  }
}

// A table knows what copies take without timing them; searches do not put them elsewhere.
TEST(OwnCopies, AreNoneOfTheSearchsAlternatives) {
  ElasticModel model = shrinkable();
  const auto copied = copy_originals(model, std::vector{with_one_change(model)}, 100);
  ASSERT_TRUE(copied.ok());
  const auto table = measure_latency_table(model, test::cpu_backends(), {.measure = {.seconds = 0.01}});
  ASSERT_TRUE(table.ok()) << table.status().message();
  const auto space = make_search_space(model, *table);
  ASSERT_TRUE(space.ok()) << space.status().message();
  const auto has_copies = [&](const Variant& variant) {
    for (size_t b = 0; b < variant.choices.size(); ++b) {
      if (space->at(b, variant.choices[b]).tied) return true;
    }
    return false;
  };
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    for (size_t c = 0; c < model.blocks[b].alternatives.size(); ++c) {
      const bool copy = is_copy(model.blocks[b].alternatives[c]);
      EXPECT_EQ(space->blocks[b][c].tied, copy);
      if (copy) {
        EXPECT_EQ(table->seconds(b, c), table->seconds(b, 0));
      }
    }
  }
  for (const LatencyTable::Sample& sample : table->samples) EXPECT_FALSE(has_copies(sample.variant));
  Random random(1);
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(has_copies(random_variant(*space, random)));
    EXPECT_FALSE(has_copies(random_mutation(*space, original_variant(model), random)));
  }
  EXPECT_TRUE(has_copies(copied->front()));
}

}  // namespace
}  // namespace limber
