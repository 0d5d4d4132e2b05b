#include "supernet/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "base/median.h"
#include "supernet/search/price_model.h"
#include "tests/supernet/random_space.h"

namespace limber {
namespace {

// Accuracy falls with the errors, by another amount in each block, and more where neighbours both changed.
class FakeAccuracy {
 public:
  FakeAccuracy(const SearchSpace& space, Random& random) : space_(space) {
    for (const auto& block : space.blocks) {
      auto& losses = loss_.emplace_back();
      for (const ChoiceCost& one : block)
        losses.push_back(0.08 * one.error * std::exp(0.7 * random.normal()));
      together_.push_back(0.01 * random.normal());
    }
  }
  double operator()(const Variant& variant) const {
    double accuracy = 0.93;
    bool changed = false;
    for (size_t b = 0; b < space_.size();) {
      const int choice = variant.choices[b];
      accuracy -= loss_[b][static_cast<size_t>(choice)];
      if (changed && choice != 0) accuracy -= together_[b];
      changed = choice != 0;
      b += static_cast<size_t>(space_.at(b, choice).span);
    }
    return std::round(accuracy * 1000) / 1000;  // as counted on a thousand images
  }

 private:
  const SearchSpace& space_;
  Prices loss_;
  std::vector<double> together_;
};

EvaluateVariants evaluate_with(const FakeAccuracy& accuracy, std::set<std::vector<int>>* seen = nullptr) {
  return [&accuracy, seen](std::span<const Variant> variants) -> Result<std::vector<double>> {
    std::vector<double> results;
    for (const Variant& variant : variants) {
      results.push_back(accuracy(variant));
      if (seen != nullptr) {
        EXPECT_TRUE(seen->insert(variant.choices).second) << "evaluated twice";
      }
    }
    return results;
  };
}

SearchSpace wide_space(uint64_t seed, int blocks = 8) {
  Random random(seed);
  for (;;) {
    SearchSpace space = test::random_space({.blocks = blocks, .alternatives = 6}, random);
    size_t alternatives = 0;
    for (const auto& block : space.blocks) alternatives += block.size();
    if (alternatives > static_cast<size_t>(blocks) * 3 &&
        price_front(space, test::errors_of(space), 0.5 * space.cost(space.original()).seconds).ok())
      return space;
  }
}

double best_of_all(const SearchSpace& space, const FakeAccuracy& accuracy, double limit) {
  double best = 0;
  test::for_each_variant(space, [&](const Variant& variant) {
    if (space.cost(variant).seconds <= limit) best = std::max(best, accuracy(variant));
  });
  return best;
}

SearchResult run_search(const SearchSpace& space, const FakeAccuracy& accuracy,
                        const SearchOptions& options) {
  std::set<std::vector<int>> seen;
  const auto result = search_variants(space, evaluate_with(accuracy, &seen), options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : SearchResult{};
}

double mean_of(const std::vector<double>& curve, size_t length) {
  double sum = 0;
  for (size_t i = 0; i < length; ++i) sum += curve[std::min(i, curve.size() - 1)];
  return sum / static_cast<double>(length);
}

TEST(Search, FindsTheOptimumInFewEvaluationsAndBeatsPlainSearch) {
  constexpr int kSpaces = 24;
  constexpr size_t kEvaluations = 80;
  const SearchMethod methods[] = {SearchMethod::kEvolution, SearchMethod::kAnnealing,
                                  SearchMethod::kPlainEvolution, SearchMethod::kPlainAnnealing};
  double regret[4] = {}, area[4] = {};
  int optimal[4] = {};
  for (uint64_t seed = 0; seed < kSpaces; ++seed) {
    const SearchSpace space = wide_space(seed);
    Random random(seed + 100);
    const FakeAccuracy accuracy(space, random);
    const double limit = 0.65 * space.cost(space.original()).seconds;
    const double best = best_of_all(space, accuracy, limit);
    for (size_t m = 0; m < 4; ++m) {
      const SearchResult result = run_search(space, accuracy,
                                             {.latency = limit,
                                              .method = methods[m],
                                              .max_evaluations = static_cast<int>(kEvaluations),
                                              .seed = seed});
      EXPECT_LE(result.best.accuracy, best + 1e-12);
      regret[m] += (best - result.best.accuracy) / kSpaces;
      area[m] += (best - mean_of(result.curve, kEvaluations)) / kSpaces;
      optimal[m] += result.best.accuracy > best - 1e-9 ? 1 : 0;
    }
  }
  for (size_t m = 0; m < 4; ++m)
    std::cout << "method " << m << ": optimum in " << optimal[m] << " of " << kSpaces << ", behind by "
              << regret[m] << " at the end, " << area[m] << " on the way\n";
  EXPECT_GE(optimal[0], kSpaces * 8 / 10);
  EXPECT_LT(regret[0], 0.001);
  EXPECT_LT(regret[1], 0.003);
  EXPECT_LT(regret[0], regret[2]);
  EXPECT_LT(regret[1], regret[3]);
  EXPECT_LT(area[0], area[2] / 2);
  EXPECT_LT(area[1], area[3] / 2);
}

// After how many evaluations the accuracy was reached; all of them when it was not.
double evaluations_for(const std::vector<double>& curve, double accuracy) {
  const auto reached = std::find_if(curve.begin(), curve.end(), [&](double a) { return a >= accuracy; });
  return static_cast<double>(reached - curve.begin()) + 1;
}

TEST(Search, NeedsAQuarterOfTheEvaluationsOfPlainSearch) {
  constexpr int kSpaces = 12;
  for (const auto method : {SearchMethod::kPlainEvolution, SearchMethod::kPlainAnnealing}) {
    std::vector<double> ratios;
    double ours = 0, theirs = 0;
    for (uint64_t seed = 0; seed < kSpaces; ++seed) {
      const SearchSpace space = wide_space(seed + 20, 16);
      Random random(seed);
      const FakeAccuracy accuracy(space, random);
      SearchOptions options{.latency_share = 0.65, .method = method, .max_evaluations = 400, .seed = seed};
      const std::vector<double> plain = run_search(space, accuracy, options).curve;
      options.method = SearchMethod::kEvolution;
      const double needed = evaluations_for(run_search(space, accuracy, options).curve, plain.back());
      ratios.push_back(needed / evaluations_for(plain, plain.back()));
      ours += needed / kSpaces;
      theirs += evaluations_for(plain, plain.back()) / kSpaces;
    }
    std::cout << ours << " evaluations where plain search needs " << theirs << "; median ratio "
              << median(ratios) << "\n";
    EXPECT_LT(median(ratios), 0.25);
    EXPECT_LT(ours, theirs / 2);
  }
}

// As without distillation: most alternatives ruin the model, and errors say only roughly which. Accuracy is a
// function of a sum, so that a knapsack over the true prices knows the optimum.
TEST(Search, FindsTheFewGoodVariantsAmongRuinedOnes) {
  constexpr int kSpaces = 12;
  double regret[3] = {}, first = 0;
  for (uint64_t seed = 0; seed < kSpaces; ++seed) {
    const SearchSpace space = wide_space(seed + 50, 24);
    Random random(seed + 50);
    Prices truth = test::errors_of(space);
    for (auto& block : truth)
      for (double& price : block) price *= 0.5 * std::exp(1.5 * random.normal());
    const auto accuracy = [&](const Variant& variant) {
      const double sum = test::price_of(space, truth, variant);
      return std::round((0.1 + 0.8 * std::exp(-std::pow(sum, 1.5))) * 500) / 500;
    };
    const EvaluateVariants evaluate = [&](std::span<const Variant> variants) {
      std::vector<double> results;
      for (const Variant& variant : variants) results.push_back(accuracy(variant));
      return Result(results);
    };
    const double limit = 0.85 * space.cost(space.original()).seconds;
    const auto best = cheapest_variant(space, truth, {.high = limit});
    ASSERT_TRUE(best.ok()) << best.status().message();
    for (size_t m = 0; m < 3; ++m) {
      const auto result =
          search_variants(space, evaluate,
                          {.latency = limit,
                           .method = m == 2 ? SearchMethod::kPlainEvolution : SearchMethod::kEvolution,
                           .refine = m == 0,
                           .max_evaluations = 96,
                           .seed = seed});
      ASSERT_TRUE(result.ok()) << result.status().message();
      regret[m] += (accuracy(best->variant) - result->best.accuracy) / kSpaces;
      if (m == 0) first += (accuracy(best->variant) - result->curve[7]) / kSpaces;
    }
  }
  std::cout << "behind the optimum by " << first << " after 8 evaluations; after 96 " << regret[0]
            << ", unrefined " << regret[1] << ", plain " << regret[2] << "\n";
  EXPECT_LT(regret[0], 0.01);
  EXPECT_LT(regret[0], regret[1]);
  EXPECT_LT(regret[1], regret[2]);
}

TEST(Search, StaysWithinTheLimitsAndCountsRight) {
  const SearchSpace space = wide_space(5);
  Random random(5);
  const FakeAccuracy accuracy(space, random);
  const VariantCost original = space.cost(space.original());
  for (const auto method : {SearchMethod::kEvolution, SearchMethod::kAnnealing, SearchMethod::kPlainEvolution,
                            SearchMethod::kPlainAnnealing}) {
    SearchOptions options{.latency_share = 0.7, .max_flops = 0.9 * original.flops, .method = method};
    options.max_evaluations = 61;
    int last = 0;
    options.progress = [&](const SearchProgress& progress) {
      EXPECT_GT(progress.evaluations, last);
      EXPECT_LE(progress.evaluations, 61);
      last = progress.evaluations;
    };
    const SearchResult result = run_search(space, accuracy, options);
    EXPECT_EQ(result.evaluated.size(), 61u);
    EXPECT_EQ(result.curve.size(), 61u);
    EXPECT_EQ(last, 61);
    EXPECT_FALSE(result.stopped);
    EXPECT_NEAR(result.limit, 0.7 * original.seconds, 1e-12);
    for (const Scored& one : result.evaluated) {
      EXPECT_TRUE(test::is_variant_of(space, one.variant));
      const VariantCost cost = space.cost(one.variant);
      EXPECT_LE(cost.seconds, result.limit * (1 + 1e-8));
      EXPECT_LE(cost.flops, options.max_flops * (1 + 1e-8));
      EXPECT_EQ(one.seconds, cost.seconds);
      EXPECT_EQ(one.accuracy, accuracy(one.variant));
      EXPECT_LE(one.accuracy, result.best.accuracy);
    }
    EXPECT_EQ(result.curve.back(), result.best.accuracy);
  }
}

TEST(Search, IsTheSameForTheSameSeed) {
  const SearchSpace space = wide_space(6);
  Random random(6);
  const FakeAccuracy accuracy(space, random);
  for (const auto method :
       {SearchMethod::kEvolution, SearchMethod::kAnnealing, SearchMethod::kPlainEvolution}) {
    SearchOptions options{.latency_share = 0.6, .method = method, .max_evaluations = 50, .seed = 9};
    const SearchResult a = run_search(space, accuracy, options), b = run_search(space, accuracy, options);
    ASSERT_EQ(a.evaluated.size(), b.evaluated.size());
    for (size_t i = 0; i < a.evaluated.size(); ++i) EXPECT_EQ(a.evaluated[i].variant, b.evaluated[i].variant);
    EXPECT_EQ(a.best.variant, b.best.variant);
    options.seed = 10;
    EXPECT_NE(run_search(space, accuracy, options).curve, std::vector<double>());
  }
}

TEST(Search, EndsWhenASmallSpaceIsExhausted) {
  SearchSpace space;
  space.blocks = {{{.seconds = 2}, {.seconds = 1, .error = 1}}, {{.seconds = 2}, {.seconds = 1, .error = 2}}};
  Random random(1);
  const FakeAccuracy accuracy(space, random);
  for (const auto method : {SearchMethod::kEvolution, SearchMethod::kAnnealing, SearchMethod::kPlainEvolution,
                            SearchMethod::kPlainAnnealing}) {
    const SearchResult result =
        run_search(space, accuracy, {.latency = 3, .method = method, .nearby = 0.5, .max_evaluations = 500});
    EXPECT_GE(result.evaluated.size(), 2u);
    EXPECT_LE(result.evaluated.size(), 3u);
  }
}

TEST(Search, WorksWithoutMeasuredErrors) {
  SearchSpace space = wide_space(7);
  for (auto& block : space.blocks)
    for (ChoiceCost& one : block) one.error = 0;
  Random random(7);
  const FakeAccuracy accuracy(wide_space(7), random);
  SearchOptions options{.latency_share = 0.6, .max_evaluations = 40};
  const auto result = search_variants(
      space, [](std::span<const Variant> v) { return Result(std::vector<double>(v.size(), 0.5)); }, options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->evaluated.size(), 40u);
}

TEST(Search, DoesNotEvaluateWhatIsKnown) {
  const SearchSpace space = wide_space(8);
  Random random(8);
  const FakeAccuracy accuracy(space, random);
  SearchOptions options{.latency_share = 0.7, .max_evaluations = 40};
  const SearchResult first = run_search(space, accuracy, options);
  options.known = first.evaluated;
  options.latency_share = 0.6;
  const SearchResult second = run_search(space, accuracy, options);
  std::set<std::vector<int>> known;
  for (const Scored& one : first.evaluated) known.insert(one.variant.choices);
  for (const Scored& one : second.evaluated) EXPECT_FALSE(known.contains(one.variant.choices));
  EXPECT_LE(second.best.seconds, second.limit * (1 + 1e-8));
}

TEST(Search, StopsWhenAsked) {
  const SearchSpace space = wide_space(9);
  Random random(9);
  const FakeAccuracy accuracy(space, random);
  std::atomic<bool> stop = false;
  SearchOptions options{.latency_share = 0.7, .max_evaluations = 1000, .stop = &stop};
  options.progress = [&](const SearchProgress& progress) { stop = progress.evaluations >= 24; };
  const SearchResult result = run_search(space, accuracy, options);
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.evaluated.size(), 32u);
}

TEST(Search, KeepsWhatWasEvaluatedWhenAnEvaluationIsStopped) {
  const SearchSpace space = wide_space(9);
  Random random(9);
  const FakeAccuracy accuracy(space, random);
  std::atomic<bool> stop = false;
  int groups = 0;
  const EvaluateVariants evaluate = [&](std::span<const Variant> variants) -> Result<std::vector<double>> {
    stop = ++groups == 3;
    if (stop) return error(Code::kResourceExhausted, "stopped");
    return evaluate_with(accuracy)(variants);
  };
  const auto result =
      search_variants(space, evaluate, {.latency_share = 0.7, .max_evaluations = 1000, .stop = &stop});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->stopped);
  EXPECT_EQ(result->evaluated.size(), 20u);  // two groups
}

TEST(Search, GroupsBeginAlike) {
  const SearchSpace space = wide_space(14, 24);
  Random random(14);
  const FakeAccuracy accuracy(space, random);
  double shared = 0;
  int groups = 0;
  const EvaluateVariants evaluate = [&](std::span<const Variant> variants) {
    const auto begins = [&](const Variant& a, const Variant& b) {
      return std::mismatch(a.choices.begin(), a.choices.end(), b.choices.begin()).first - a.choices.begin();
    };
    for (size_t i = 1; i < variants.size() && groups > 0; ++i)
      shared += static_cast<double>(begins(variants[0], variants[i])) /
                static_cast<double>((variants.size() - 1) * space.size());
    ++groups;
    return evaluate_with(accuracy)(variants);
  };
  ASSERT_TRUE(search_variants(space, evaluate, {.latency_share = 0.7, .max_evaluations = 100}).ok());
  EXPECT_GT(shared / (groups - 1), 0.55);
}

TEST(Search, SaysWhatIsWrong) {
  const SearchSpace space = wide_space(10);
  const EvaluateVariants evaluate = [](std::span<const Variant> v) {
    return Result(std::vector<double>(v.size(), 0.5));
  };
  const auto code = [&](const SearchOptions& options) {
    return search_variants(space, evaluate, options).status().code();
  };
  EXPECT_EQ(code({}), Code::kInvalidArgument);
  EXPECT_EQ(code({.latency = 1e-6}), Code::kInvalidArgument);
  EXPECT_EQ(code({.latency_share = 0.7, .max_evaluations = 0}), Code::kInvalidArgument);
  EXPECT_EQ(code({.latency_share = 0.7, .nearby = 2}), Code::kInvalidArgument);
  const auto failing = [](std::span<const Variant>) -> Result<std::vector<double>> {
    return error(Code::kIo, "no images");
  };
  EXPECT_EQ(search_variants(space, failing, {.latency_share = 0.7}).status().code(), Code::kIo);
  const auto impossible = search_variants(space, evaluate, {.latency = 1e-6});
  EXPECT_NE(impossible.status().message().find("the fastest takes"), std::string::npos);
}

TEST(Search, MovesKeepVariantsValid) {
  Random random(11);
  for (int i = 0; i < 200; ++i) {
    const SearchSpace space = test::random_space({.blocks = 6}, random);
    const double original = space.cost(space.original()).seconds;
    const Band band{.low = 0.6 * original, .high = 0.7 * original};
    Variant a = random_variant(space, random), b = nearby_variant(space, band, random);
    ASSERT_TRUE(test::is_variant_of(space, a));
    ASSERT_TRUE(test::is_variant_of(space, b));
    ASSERT_TRUE(test::is_variant_of(space, cross(space, a, b, random)));
    for (int k = 0; k < 10; ++k) {
      a = nearby_mutation(space, band, std::move(a), random);
      b = random_mutation(space, std::move(b), random);
      ASSERT_TRUE(test::is_variant_of(space, a));
      ASSERT_TRUE(test::is_variant_of(space, b));
    }
  }
}

TEST(Search, NearbyVariantsAreMostlyInsideTheBand) {
  const SearchSpace space = wide_space(12);
  Random random(12);
  const double original = space.cost(space.original()).seconds;
  const Band band{.low = 0.9 * 0.7 * original, .high = 0.7 * original};
  int inside = 0;
  for (int i = 0; i < 100; ++i)
    inside += band.distance(space.cost(nearby_variant(space, band, random))) <= 0 ? 1 : 0;
  EXPECT_GE(inside, 95);
}

TEST(Search, LearntPricesAreTheTrueOnesWhereAccuracyIsASum) {
  const SearchSpace space = wide_space(13);
  Random random(13);
  Prices truth = test::errors_of(space);
  for (auto& block : truth)
    for (double& price : block) price *= 0.05 * std::exp(random.normal());
  std::vector<Scored> samples;
  for (int i = 0; i < 300; ++i) {
    const Variant variant = random_variant(space, random);
    samples.push_back({variant, 0, 0.9 - test::price_of(space, truth, variant)});
  }
  const Prices learnt = PriceModel(space, samples).prices(0, random);
  for (int i = 0; i < 50; ++i) {
    const Variant a = random_variant(space, random);
    EXPECT_NEAR(test::price_of(space, learnt, a), test::price_of(space, truth, a), 0.004);
  }
}

TEST(Search, FrontAndLevelsHoldTheBest) {
  const auto scored = [](double seconds, double accuracy, int id) {
    return Scored{{.choices = {id}}, seconds, accuracy};
  };
  const std::vector<Scored> all = {scored(3, 0.7, 0), scored(1, 0.5, 1), scored(2, 0.5, 2),
                                   scored(4, 0.6, 3), scored(3, 0.8, 4), scored(5, 0.9, 5)};
  const auto front = pareto_front(all);
  ASSERT_EQ(front.size(), 3u);
  EXPECT_EQ(front[0].variant.choices[0], 1);
  EXPECT_EQ(front[1].variant.choices[0], 4);
  EXPECT_EQ(front[2].variant.choices[0], 5);
  const auto pool = best_per_level(all, std::vector<double>{0.5, 2, 2.5, 4});
  ASSERT_EQ(pool.size(), 2u);
  EXPECT_EQ(pool[0].variant.choices[0], 1);
  EXPECT_EQ(pool[1].variant.choices[0], 4);
}

// Moves never bring a copy in: what has most of them comes from the tuned variant itself.
TEST(Search, ATunedVariantThatIsJustTooSlowIsHardlyChanged) {
  SearchSpace space;
  for (int b = 0; b < 6; ++b)
    space.blocks.push_back(
        {{.seconds = 1}, {.seconds = 1, .error = 1, .tied = true}, {.seconds = 0.5, .error = 0.1}});
  SearchOptions options{.latency = 5.6, .max_evaluations = 40};
  options.seeds = {Variant{.choices = std::vector<int>(6, 1)}};
  const auto copies = [](const Variant& variant) {
    return std::count(variant.choices.begin(), variant.choices.end(), 1);
  };
  const auto evaluate = [&](std::span<const Variant> variants) -> Result<std::vector<double>> {
    std::vector<double> accuracies;
    for (const Variant& variant : variants) accuracies.push_back(0.1 * static_cast<double>(copies(variant)));
    return accuracies;
  };
  const auto found = search_variants(space, evaluate, options);
  ASSERT_TRUE(found.ok()) << found.status().message();
  int64_t most = 0;
  for (const Scored& one : found->evaluated) most = std::max<int64_t>(most, copies(one.variant));
  EXPECT_EQ(most, 5);
}

}  // namespace
}  // namespace limber
