#include "supernet/teach/chain.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/supernet/random_space.h"

namespace limber {
namespace {

double seconds_of(const SearchSpace& space, const Variant& variant) { return space.cost(variant).seconds; }

// By the roots, as the chain is chosen.
Prices roots_of(const SearchSpace& space) {
  Prices prices = test::errors_of(space);
  for (auto& block : prices) {
    for (double& price : block) price = std::sqrt(price);
  }
  return prices;
}

double price_of(const SearchSpace& space, const Variant& variant) {
  return test::price_of(space, roots_of(space), variant);
}

// Is everything in `slower` also in `faster`, or an original or another alternative within one of these?
bool only_refines(const SearchSpace& space, const Variant& slower, const Variant& faster) {
  for (size_t b = 0; b < space.size(); ++b) {
    if (faster.choices[b] == Variant::kCovered) continue;
    const size_t end = b + static_cast<size_t>(space.at(b, faster.choices[b]).span);
    if (slower.choices[b] == Variant::kCovered) return false;
    for (size_t i = b; i < end; ++i) {
      if (slower.choices[i] == Variant::kCovered) continue;
      if (i + static_cast<size_t>(space.at(i, slower.choices[i]).span) > end) return false;
      const bool same = i == b && slower.choices[b] == faster.choices[b];
      if (!same && space.at(i, slower.choices[i]).error > space.at(b, faster.choices[b]).error) return false;
    }
  }
  return true;
}

TEST(VariantChain, KeepsItsSharesAndEachDiffersFromTheNextInWhatIsNearerToTheModel) {
  size_t links = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    const SearchSpace space = test::random_space({.blocks = 8, .alternatives = 6}, random);
    const double original = seconds_of(space, space.original());
    const std::vector<double> shares = whole_range();
    const auto chain = variant_chain(space, shares);
    ASSERT_TRUE(chain.ok()) << chain.status().message();
    links += chain->size();
    for (size_t i = 0; i < chain->size(); ++i) {
      const TimedVariant& one = (*chain)[i];
      EXPECT_TRUE(test::is_variant_of(space, one.variant));
      EXPECT_DOUBLE_EQ(one.share, seconds_of(space, one.variant) / original);
      EXPECT_LE(one.share, shares.front());
      if (i == 0) continue;
      const TimedVariant& slower = (*chain)[i - 1];
      EXPECT_GT(slower.share, one.share);
      EXPECT_LT(price_of(space, slower.variant), price_of(space, one.variant));
      EXPECT_TRUE(only_refines(space, slower.variant, one.variant)) << "seed " << seed << ", link " << i;
    }
  }
  EXPECT_GT(links, 100u);
}

TEST(VariantChain, TheFastestIsTheOneThatErrorsMakeLookBest) {
  Random random(1);
  const SearchSpace space = test::random_space({.blocks = 8, .alternatives = 6}, random);
  const std::vector<double> shares = {0.6};
  const auto chain = variant_chain(space, shares);
  ASSERT_TRUE(chain.ok()) << chain.status().message();
  ASSERT_EQ(chain->size(), 1u);
  const double limit = 0.6 * seconds_of(space, space.original());
  const auto best = cheapest_variant(space, roots_of(space), {.high = 0.95 * limit});
  ASSERT_TRUE(best.ok()) << best.status().message();
  EXPECT_NEAR(price_of(space, chain->front().variant), best->price, 0.01 * best->price);
}

TEST(VariantChain, LeavesOutWhatNothingIsFastEnoughFor) {
  SearchSpace space;
  for (int b = 0; b < 6; ++b)
    space.blocks.push_back(
        {{.seconds = 1}, {.seconds = 0.5, .error = 0.1 * (b + 1)}, {.seconds = 0.1, .error = 1}});
  const std::vector<double> shares = {0.01, 0.6, 0.9};
  const auto chain = variant_chain(space, shares);
  ASSERT_TRUE(chain.ok()) << chain.status().message();
  ASSERT_EQ(chain->size(), 2u);
  EXPECT_LE(chain->front().share, 0.9);
  EXPECT_LE(chain->back().share, 0.6);
  EXPECT_EQ(chain->front().variant.choices, (std::vector<int>{1, 1, 0, 0, 0, 0}));  // where errors are least
}

TEST(VariantChain, TheWholeRangeHasNoGaps) {
  const std::vector<double> shares = whole_range();
  ASSERT_FALSE(shares.empty());
  double before = 1;
  for (const double share : shares) {
    EXPECT_LT(share, before);
    EXPECT_GT(share, before - 0.05);
    before = share;
  }
  EXPECT_NEAR(shares.back(), kFastestShare, 1e-12);
}

TEST(RangeAccuracy, IsTheMeanOverLatenciesNotOverVariants) {
  EXPECT_DOUBLE_EQ(range_accuracy({{1, 0.9}}), 0.9);
  EXPECT_DOUBLE_EQ(range_accuracy({{0.3, 0.5}, {1, 0.9}}), 0.7);
  // Many variants close together count no more than what they span.
  EXPECT_NEAR(range_accuracy({{1, 0.9}, {0.5, 0.9}, {0.3, 0.5}, {0.301, 0.5}, {0.302, 0.5}}),
              (0.5 * 0.9 + 0.198 * 0.7 + 0.002 * 0.5) / 0.7, 1e-9);
}

}  // namespace
}  // namespace limber
