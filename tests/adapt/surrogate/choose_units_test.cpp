#include "adapt/surrogate/choose_units.h"

#include "passes/slice_channels.h"
#include "tests/adapt/surrogate/master_case.h"

namespace limber::adapt {
namespace {

double operations_of(const Graph& graph) {
  const Graph bound = *limber::bind(graph, {{"N", 1}});
  double sum = 0;
  for (uint32_t n = 0; n < bound.num_nodes(); ++n) {
    const OpKind op = bound.node(NodeId{n}).op;
    if (op == OpKind::kConv || op == OpKind::kGemm) sum += node_flops(bound, NodeId{n});
  }
  return sum;
}

OperationCount count_of(const PlainMaster& plain) {
  auto count = OperationCount::of(plain.graph, plain.groups);
  EXPECT_TRUE(count.ok()) << count.status().message();
  return *std::move(count);
}

std::vector<int64_t> sizes(const std::vector<std::vector<int64_t>>& kept) {
  std::vector<int64_t> counts;
  for (const auto& units : kept) counts.push_back(static_cast<int64_t>(units.size()));
  return counts;
}

TEST(OperationCount, IsThatOfTheNetworkThatIsCut) {
  const PlainMaster plain = plain_of(residual_model());
  const OperationCount count = count_of(plain);
  EXPECT_EQ(count.whole(), operations_of(plain.graph));
  for (int64_t a = 1; a <= 8; ++a) {
    for (int64_t b = 1; b <= 6; ++b) {
      std::vector<std::vector<int64_t>> kept(2);
      for (int64_t u = 0; u < a; ++u) kept[0].push_back(u);
      for (int64_t u = 0; u < b; ++u) kept[1].push_back(u);
      const auto sliced = slice_channels(plain.graph, plain.groups, kept);
      ASSERT_TRUE(sliced.ok());
      EXPECT_NEAR(count.at(sizes(kept)), operations_of(sliced->graph), 1e-6 * count.whole());
    }
  }
}

TEST(ChooseUnits, EvenSharesFillTheBudgetWithTheMostRelevant) {
  const PlainMaster plain = plain_of(residual_model());
  const OperationCount count = count_of(plain);
  const UnitRelevance relevance = {{1, 9, 2, 8, 3, 7, 4, 6}, {5, 1, 4, 2, 6, 3}};
  for (const double share : {0.2, 0.3, 0.5, 0.8}) {
    const auto kept = choose_units(count, relevance, {.operations = share, .choice = UnitChoice::kEven});
    EXPECT_LE(count.at(sizes(kept)), share * count.whole());
    // One unit more of the larger group would be too many.
    std::vector<int64_t> more = sizes(kept);
    ++more[0], ++more[1];
    EXPECT_GT(count.at(more), share * count.whole());
    EXPECT_NEAR(static_cast<double>(kept[0].size()) / 8, static_cast<double>(kept[1].size()) / 6, 0.13);
  }
  const auto half = choose_units(count, relevance, {.operations = 0.31, .choice = UnitChoice::kEven});
  EXPECT_EQ(half[0], (std::vector<int64_t>{1, 3, 5, 7}));
  EXPECT_EQ(half[1], (std::vector<int64_t>{0, 2, 4}));
}

TEST(ChooseUnits, NearlyAsGoodAsTheBestOfAllChoices) {
  const PlainMaster plain = plain_of(residual_model());
  const OperationCount count = count_of(plain);
  Random random(5);
  for (int round = 0; round < 20; ++round) {
    UnitRelevance relevance = {std::vector<double>(8), std::vector<double>(6)};
    for (auto& group : relevance) {
      for (double& x : group) x = random.uniform(0, 1);
    }
    // Of so many units of a group the most relevant are best.
    const auto held = [&](std::span<const int64_t> counts) {
      double sum = 0;
      for (size_t g = 0; g < 2; ++g) {
        std::vector<double> sorted = relevance[g];
        std::sort(sorted.rbegin(), sorted.rend());
        for (int64_t i = 0; i < counts[g]; ++i) sum += sorted[static_cast<size_t>(i)];
      }
      return sum;
    };
    for (const double share : {0.25, 0.5}) {
      double best = 0;
      for (int64_t a = 1; a <= 8; ++a) {
        for (int64_t b = 1; b <= 6; ++b) {
          const int64_t counts[] = {a, b};
          if (count.at(counts) <= share * count.whole()) best = std::max(best, held(counts));
        }
      }
      const auto kept =
          choose_units(count, relevance, {.operations = share, .choice = UnitChoice::kGlobal, .least = 0.1});
      EXPECT_LE(count.at(sizes(kept)), share * count.whole());
      EXPECT_GE(held(sizes(kept)), 0.85 * best);
    }
  }
}

TEST(ChooseUnits, BlocksAreKeptWhole) {
  const PlainMaster plain = plain_of(residual_model());
  const OperationCount count = count_of(plain);
  const UnitRelevance relevance = {std::vector<double>(8, 1), std::vector<double>(6, 1)};
  for (const UnitChoice choice : {UnitChoice::kEven, UnitChoice::kGlobal}) {
    const auto kept =
        choose_units(count, relevance, {.operations = 0.4, .choice = choice, .block = 4, .least = 0});
    EXPECT_EQ(kept[0].size(), 4u);
    EXPECT_EQ(kept[1].size() % 4, kept[1].size() == 6 ? 2u : 0u);
  }
}

TEST(ChooseUnits, WhatTheBudgetCannotHoldIsTheLeastThereIs) {
  const PlainMaster plain = plain_of(residual_model());
  const OperationCount count = count_of(plain);
  const UnitRelevance relevance = {std::vector<double>(8, 1), std::vector<double>(6, 1)};
  const auto even = choose_units(count, relevance, {.operations = 1e-4, .choice = UnitChoice::kEven});
  EXPECT_EQ(sizes(even), (std::vector<int64_t>{1, 1}));
  const auto global =
      choose_units(count, relevance, {.operations = 1e-4, .choice = UnitChoice::kGlobal, .least = 0.5});
  EXPECT_EQ(sizes(global), (std::vector<int64_t>{4, 3}));
}

}  // namespace
}  // namespace limber::adapt
