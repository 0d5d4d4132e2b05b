#include "supernet/exits/exit_calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "passes/classifier.h"
#include "supernet/exits/exit_balance.h"

namespace limber {
namespace {

// Later endings are right more often, and confidence says something about being right.
ExitOutcomes random_outcomes(size_t exits, size_t images, int levels, uint64_t seed) {
  Random random(seed);
  ExitOutcomes outcomes;
  for (size_t e = 0; e <= exits; ++e) {
    ExitOutcomes::Ending& ending = outcomes.endings.emplace_back();
    ending.seconds = static_cast<double>(e + 1) + 0.1 * random.uniform();
    ending.forced_seconds = ending.seconds - 0.05 * static_cast<double>(e);
    for (size_t i = 0; i < images; ++i) {
      const double sure = std::ceil(random.uniform() * levels) / levels;
      ending.confidence.push_back(sure);
      ending.correct.push_back(random.uniform() < (e == exits ? 0.95 : 0.5 * sure + 0.4));
    }
  }
  return outcomes;
}

// Every confidence that any exit has, tried one by one.
ExitPoint brute_force(const ExitOutcomes& outcomes, double max_drop) {
  ExitPoint best = outcome_at(outcomes, 0);
  const double needed = best.accuracy - max_drop - 1e-9;
  for (size_t e = 0; e + 1 < outcomes.endings.size(); ++e) {
    for (const double confidence : outcomes.endings[e].confidence) {
      const ExitPoint point = outcome_at(outcomes, confidence);
      if (point.accuracy >= needed && point.seconds < best.seconds - 1e-12) best = point;
    }
  }
  return best;
}

TEST(ExitCalibration, FindsWhatBruteForceFinds) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const ExitOutcomes outcomes = random_outcomes(1 + seed % 4, 40 + seed, seed % 2 == 0 ? 7 : 1000000, seed);
    for (const double drop : {0.0, 0.01, 0.05, 0.2, 1.0}) {
      const double least = outcome_at(outcomes, 0).accuracy - drop;
      const ExitPoint found = calibrate_exits(outcomes, least), best = brute_force(outcomes, drop);
      EXPECT_NEAR(found.seconds, best.seconds, 1e-9) << "seed " << seed << " drop " << drop;
      EXPECT_GE(found.accuracy, least - 1e-9);
    }
  }
}

TEST(ExitCalibration, ChosenConfidenceHasFewDigits) {
  ExitOutcomes outcomes;
  outcomes.endings = {{{0.95123456, 0.5, 0.951}, {true, false, true}, 1, 1},
                      {{1, 1, 1}, {true, true, true}, 2, 2}};
  const ExitPoint point = calibrate_exits(outcomes, 1);
  EXPECT_EQ(point.confidence, 0.9);
  EXPECT_NEAR(point.seconds, (1 + 2 + 1) / 3.0, 1e-12);
  EXPECT_EQ(point.accuracy, 1);
  EXPECT_EQ(calibrate_exits(outcomes, 1.5).confidence, 0);  // nothing is as good as that
}

TEST(ExitCalibration, SharesAddUpAndZeroTakesNoExit) {
  const ExitOutcomes outcomes = random_outcomes(3, 100, 50, 3);
  for (const double confidence : {0.0, 0.2, 0.7, 1.0}) {
    const ExitPoint point = outcome_at(outcomes, confidence);
    ASSERT_EQ(point.shares.size(), 4u);
    double sum = 0, seconds = 0;
    for (size_t e = 0; e < 4; ++e) {
      sum += point.shares[e];
      seconds += point.shares[e] * outcomes.endings[e].seconds;
    }
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_NEAR(seconds, point.seconds, 1e-12);
  }
  EXPECT_EQ(outcome_at(outcomes, 0).shares.back(), 1);
  for (const ExitPoint& point : exit_curve(outcomes, 5)) EXPECT_GE(point.accuracy, 0);
  EXPECT_EQ(exit_curve(outcomes, 5).back().confidence, 0);
}

TEST(ExitCalibration, ForcedExitIsTheBestWithinTheTime) {
  ExitOutcomes outcomes;
  outcomes.endings = {
      {{1, 1}, {true, false}, 1, 1}, {{1, 1}, {false, false}, 2.5, 2}, {{}, {true, true}, 4, 3}};
  EXPECT_EQ(forced_exit(outcomes, 0.5), 0u);  // none is fast enough: the fastest
  EXPECT_EQ(forced_exit(outcomes, 1), 0u);
  EXPECT_EQ(forced_exit(outcomes, 2.2), 0u);  // the second is later and worse
  EXPECT_EQ(forced_exit(outcomes, 3), 2u);
}

TEST(ExitCalibration, RefusesWhatDoesNotFitTogether) {
  ExitOutcomes outcomes;
  EXPECT_EQ(outcomes.check().code(), Code::kInvalidArgument);
  outcomes.endings = {{{0.5}, {true}, 1, 1}, {{}, {true, true}, 2, 2}};
  EXPECT_EQ(outcomes.check().code(), Code::kInvalidArgument);
  outcomes = random_outcomes(2, 5, 10, 1);
  EXPECT_TRUE(outcomes.check().ok());
}

// Of two exits that are equally good one boasts: no single confidence suits both until it is damped.
TEST(ExitCalibration, BalanceDampsAnExitThatIsTooSure) {
  constexpr size_t kImages = 400;
  Random random(1);
  ExitOutcomes outcomes;
  std::vector<std::vector<float>> logits(2);
  for (size_t e = 0; e < 3; ++e) {
    ExitOutcomes::Ending& ending = outcomes.endings.emplace_back();
    ending.seconds = static_cast<double>(e + 1);
    for (size_t i = 0; i < kImages && e < 2; ++i) {
      const double margin = 4 * random.uniform();
      ending.correct.push_back(random.uniform() < 1 / (1 + std::exp(-3 * (margin - 1))));
      logits[e].push_back(static_cast<float>(margin * (e == 0 ? 4 : 1)));
      logits[e].push_back(0);
    }
  }
  outcomes.endings[2].correct.assign(kImages, true);
  const double least = 0.97;
  const auto factors = balance_factors(logits, 2, outcomes, least);
  ASSERT_EQ(factors.size(), 2u);
  EXPECT_LT(factors[0], factors[1]);
  const auto seconds = [&](double first, double second) {
    const std::vector<double> by = {first, second};
    for (size_t e = 0; e < 2; ++e) {
      outcomes.endings[e].confidence.clear();
      for (size_t i = 0; i < kImages; ++i) {
        const std::vector<float> row = {logits[e][2 * i] * static_cast<float>(by[e]), 0};
        outcomes.endings[e].confidence.push_back(confidence_of(row));
      }
    }
    return calibrate_exits(outcomes, least).seconds;
  };
  EXPECT_LT(seconds(factors[0], factors[1]), seconds(1, 1));
}

TEST(ExitCalibration, Confidence) {
  const std::vector<float> sure = {100, 0, 0}, unsure = {1, 1, 1, 1};
  EXPECT_NEAR(confidence_of(sure), 1, 1e-9);
  EXPECT_NEAR(confidence_of(unsure), 0.25, 1e-9);
  const std::vector<float> broken = {1, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_EQ(confidence_of(broken), 0);
}

}  // namespace
}  // namespace limber
