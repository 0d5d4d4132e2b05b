#include "supernet/expand/own_copy.h"

#include <set>

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

std::vector<Variant> with_copies(ElasticModel& model, const std::vector<Variant>& variants, double limit) {
  const auto copied = copy_originals(model, variants, limit);
  EXPECT_TRUE(copied.ok()) << copied.status().message();
  return copied.ok() ? *copied : variants;
}

double count_parameters(const ElasticModel& model) {
  double sum = 0;
  for (const std::string& name : model.params->names())
    sum += static_cast<double>(model.params->type(name)->shape.elements());
  return sum;
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
  const std::vector<Variant> copied = with_copies(model, variants, 100);
  ASSERT_TRUE(check_elastic(model).ok()) << check_elastic(model).message();
  ASSERT_EQ(copied.size(), variants.size());
  for (size_t v = 0; v < variants.size(); ++v) {
    const Variant& variant = copied[v];
    ASSERT_TRUE(check_variant(model, variant).ok());
    expect_same_answers(model, variant, variants[v]);
    bool changed = false;
    for (size_t b = 0; b < variant.choices.size(); ++b) {
      EXPECT_EQ(variant.choices[b] == 0, !changed && variants[v].choices[b] == 0) << b;
      changed = changed || variants[v].choices[b] != 0;
    }
  }
  const size_t last = model.blocks.size() - 1;
  EXPECT_TRUE(is_copy(model.blocks[last].alternatives[1]));
  EXPECT_FALSE(is_copy(model.blocks[last].alternatives[0]));
}

// What is trained for one share of the latency is trained for all, and costs the room of one.
TEST(OwnCopies, ShareTheirWeightsAndHaveScalesOfTheirOwn) {
  ElasticModel model = shrinkable();
  const double base = static_cast<double>(parameter_elements(model.base));
  std::vector<Variant> variants = {with_one_change(model)};
  with_copies(model, variants, 100);
  const double one = count_parameters(model);
  variants.resize(3 * kCopyParts, variants[0]);
  const std::vector<Variant> copied = with_copies(model, variants, 100);
  EXPECT_LT(count_parameters(model) - one, 0.05 * base);
  std::set<std::vector<int>> different;
  for (const Variant& variant : copied) different.insert(variant.choices);
  EXPECT_EQ(different.size(), kCopyParts);
  EXPECT_EQ(copied[0], copied[2]);
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    if (copied.front().choices[b] == copied.back().choices[b]) continue;
    const auto values_of = [&](const Variant& variant) {
      const auto& of = model.blocks[b].alternatives[static_cast<size_t>(variant.choices[b])];
      EXPECT_TRUE(is_copy(of)) << of.name;
      return of.graph.values();
    };
    const auto first = values_of(copied.front()), last = values_of(copied.back());
    for (size_t i = 0; i < first.size(); ++i) {
      if (first[i].role != Role::kParameter && first[i].role != Role::kState) continue;
      EXPECT_TRUE(first[i].name.starts_with("alt/")) << first[i].name;
      EXPECT_EQ(first[i].name == last[i].name, first[i].type.shape.rank() > 1) << first[i].name;
    }
  }
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
  with_copies(model, {with_one_change(model)}, 100);
  const auto now = parse_variant(model, stored);
  ASSERT_TRUE(now.ok()) << now.status().message();
  EXPECT_EQ(last.alternatives[static_cast<size_t>(now->choices.back())].name, kTunedAlternative);
}

TEST(OwnCopies, AreMadeOnce) {
  ElasticModel model = shrinkable();
  const std::vector<Variant> first = with_copies(model, {with_one_change(model)}, 100);
  const size_t names = model.params->names().size();
  EXPECT_EQ(with_copies(model, first, 100), first);
  EXPECT_EQ(model.params->names().size(), names);
}

TEST(OwnCopies, StayWithinTheSizeLimit) {
  const std::vector<double> limits = {1, 1.7, 2.1};
  for (const double limit : limits) {
    ElasticModel model = shrinkable();
    const double before = count_parameters(model);
    const double base = static_cast<double>(parameter_elements(model.base));
    const Variant variant = with_one_change(model);
    const Variant now = with_copies(model, {variant}, limit)[0];
    EXPECT_LE(count_parameters(model), std::max(before, limit * base)) << limit;
    if (limit * base <= before) {
      EXPECT_EQ(now, variant);
    }
  }
}

// A table knows what copies take without timing them; searches do not put them elsewhere.
TEST(OwnCopies, AreNoneOfTheSearchsAlternatives) {
  ElasticModel model = shrinkable();
  const Variant with_them = with_copies(model, {with_one_change(model)}, 100)[0];
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
  EXPECT_TRUE(has_copies(with_them));
}

}  // namespace
}  // namespace limber
