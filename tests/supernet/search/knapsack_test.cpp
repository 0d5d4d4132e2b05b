#include "supernet/search/knapsack.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/supernet/random_space.h"

namespace limber {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Listed {
  double seconds, price;
};

std::vector<Listed> list_variants(const SearchSpace& space, const Prices& prices) {
  std::vector<Listed> all;
  test::for_each_variant(space, [&](const Variant& variant) {
    all.push_back({space.cost(variant).seconds, test::price_of(space, prices, variant)});
  });
  return all;
}

double least_price(const std::vector<Listed>& all, double limit) {
  double best = kInfinity;
  for (const Listed& one : all) {
    if (one.seconds <= limit * (1 + 1e-12)) best = std::min(best, one.price);
  }
  return best;
}

double fastest(const std::vector<Listed>& all) {
  double best = kInfinity;
  for (const Listed& one : all) best = std::min(best, one.seconds);
  return best;
}

void expect_consistent(const SearchSpace& space, const Prices& prices, const Priced& one) {
  ASSERT_TRUE(test::is_variant_of(space, one.variant));
  EXPECT_NEAR(one.seconds, space.cost(one.variant).seconds, 1e-9);
  EXPECT_NEAR(one.price, test::price_of(space, prices, one.variant), 1e-9);
}

TEST(Knapsack, IsAsCheapAsTheBestOfAllVariants) {
  Random random(1);
  for (int i = 0; i < 400; ++i) {
    SCOPED_TRACE(i);
    const SearchSpace space = test::random_space(
        {.blocks = 1 + static_cast<int>(random.below(6)), .alternatives = 4, .whole = i % 2 == 0}, random);
    Prices prices = test::errors_of(space);
    if (i % 3 == 0) {
      for (auto& block : prices)
        for (double& price : block) price -= 1;  // learnt prices may be gains
    }
    const auto all = list_variants(space, prices);
    const double limit = random.uniform(0.3, 1.1) * space.cost(space.original()).seconds;
    const auto found = cheapest_variant(space, prices, {.high = limit});
    if (least_price(all, limit) == kInfinity) {
      EXPECT_EQ(found.status().code(), Code::kInvalidArgument);
      continue;
    }
    ASSERT_TRUE(found.ok()) << found.status().message();
    expect_consistent(space, prices, *found);
    EXPECT_LE(found->seconds, limit * (1 + 1e-9));
    EXPECT_NEAR(found->price, least_price(all, limit), 1e-9);
  }
}

TEST(Knapsack, FrontHoldsTheCheapestForEveryLatency) {
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE(i);
    const SearchSpace space = test::random_space({.blocks = 5, .whole = i % 2 == 0}, random);
    const Prices prices = test::errors_of(space);
    const auto all = list_variants(space, prices);
    const auto front = price_front(space, prices, 1e9);
    ASSERT_TRUE(front.ok());
    for (size_t k = 0; k < front->size(); ++k) {
      const Priced& one = (*front)[k];
      expect_consistent(space, prices, one);
      EXPECT_NEAR(one.price, least_price(all, one.seconds), 1e-9);
      if (k == 0) continue;
      EXPECT_GT(one.seconds, (*front)[k - 1].seconds);
      EXPECT_LT(one.price, (*front)[k - 1].price);
    }
    EXPECT_NEAR(front->front().seconds, fastest(all), 1e-9);
    EXPECT_NEAR(front->back().price, least_price(all, 1e9), 1e-9);
  }
}

TEST(Knapsack, ALimitThatIsTheLatencyOfAVariantIsMet) {
  Random random(3);
  for (int i = 0; i < 50; ++i) {
    const SearchSpace space = test::random_space({.blocks = 6}, random);
    const auto all = list_variants(space, test::errors_of(space));
    const auto found = cheapest_variant(space, test::errors_of(space), {.high = fastest(all)});
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_NEAR(found->seconds, fastest(all), 1e-9);
  }
}

TEST(Knapsack, ImpossibleLimitNamesTheFastest) {
  SearchSpace space;
  space.blocks = {{{.seconds = 2}, {.seconds = 0.5, .error = 1}},
                  {{.seconds = 2}, {.seconds = 0.75, .error = 1}}};
  const auto found = cheapest_variant(space, test::errors_of(space), {.high = 1});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), Code::kInvalidArgument);
  EXPECT_NE(found.status().message().find("the fastest takes 1.25 s"), std::string::npos)
      << found.status().message();
}

TEST(Knapsack, CoarseResolutionStaysWithinTheLimitAndNearTheBest) {
  Random random(4);
  for (int i = 0; i < 30; ++i) {
    const SearchSpace space = test::random_space({.blocks = 14, .alternatives = 6}, random);
    const Prices prices = test::errors_of(space);
    const double limit = 0.7 * space.cost(space.original()).seconds;
    const auto fine = cheapest_variant(space, prices, {.high = limit}, 1 << 20);
    const auto coarse = cheapest_variant(space, prices, {.high = limit}, 512);
    ASSERT_EQ(fine.ok(), coarse.ok());
    if (!fine.ok()) continue;
    EXPECT_LE(coarse->seconds, limit * (1 + 1e-9));
    EXPECT_GE(coarse->price, fine->price - 1e-9);
    EXPECT_LE(coarse->price, fine->price * 1.05 + 1e-3);
  }
}

TEST(Knapsack, MeetsLimitsOnFlopsAndParameters) {
  Random random(5);
  int met = 0, possible = 0;
  for (int i = 0; i < 100; ++i) {
    const SearchSpace space = test::random_space({.blocks = 5}, random);
    const VariantCost original = space.cost(space.original());
    const Band band{.high = 0.9 * original.seconds,
                    .max_flops = 0.8 * original.flops,
                    .max_parameter_bytes = 0.8 * original.parameter_bytes};
    bool any = false;
    test::for_each_variant(space, [&](const Variant& v) { any |= band.allows(space.cost(v)); });
    const auto found = cheapest_variant(space, test::errors_of(space), band);
    if (found.ok()) {
      EXPECT_TRUE(band.allows(space.cost(found->variant)));
      ++met;
    }
    possible += any ? 1 : 0;
  }
  EXPECT_GE(met, possible * 95 / 100);
  EXPECT_GT(possible, 30);
}

TEST(Knapsack, RefusesASpaceThatDoesNotCoverItsBlocks) {
  SearchSpace space;
  space.blocks = {{{.seconds = 1}, {.span = 2, .seconds = 1}}};
  EXPECT_EQ(price_front(space, test::errors_of(space), 10).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(price_front({}, {}, 10).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace limber
