#include "adapt/estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace limber::adapt {
namespace {

constexpr size_t kClasses = 5;

DomainSignature looking(float mean) {
  DomainSignature signature;
  signature.mean.fill(mean);
  signature.variance.fill(1);
  signature.frames = 1000;
  return signature;
}

// Logits that mean what they say at temperature `temperature`: the label is drawn from their softmax. `noise`
// lowers accuracy and leaves confidence as it is.
std::vector<JudgedFrame> honest(size_t count, double spread, double temperature, uint64_t seed,
                                double noise = 0) {
  Random random(seed);
  std::vector<JudgedFrame> frames(count);
  for (JudgedFrame& frame : frames) {
    double sum = 0, shares[kClasses];
    for (double& share : shares) {
      const double logit = spread * random.normal();
      frame.logits.push_back(static_cast<float>(logit * temperature));
      sum += share = std::exp(logit);
    }
    double left = random.uniform() * sum;
    while (frame.label + 1 < static_cast<int64_t>(kClasses) && left >= shares[frame.label])
      left -= shares[frame.label++];
    if (random.uniform() < noise) frame.label = static_cast<int64_t>(random.below(kClasses));
  }
  return frames;
}

double accuracy(const std::vector<JudgedFrame>& frames) {
  double right = 0;
  for (const JudgedFrame& frame : frames)
    right += std::max_element(frame.logits.begin(), frame.logits.end()) - frame.logits.begin() == frame.label;
  return right / static_cast<double>(frames.size());
}

std::vector<Sureness> sure(const std::vector<JudgedFrame>& frames, const AccuracyEstimator& estimator) {
  std::vector<Sureness> made;
  for (const JudgedFrame& frame : frames) made.push_back(sureness_of(frame.logits, estimator.temperature()));
  return made;
}

TEST(AccuracyEstimator, AnswersThatAreNoNumbersCountAsWrong) {
  const auto estimator = AccuracyEstimator::create(honest(1000, 3, 1, 1), looking(0));
  ASSERT_TRUE(estimator.ok());
  auto frames = honest(100, 3, 1, 2);
  const auto before = estimator->estimate(looking(0), sure(frames, *estimator));
  for (size_t i = 0; i < 50; ++i) frames[i].logits[1] = i % 2 == 0 ? NAN : INFINITY;
  const auto after = estimator->estimate(looking(0), sure(frames, *estimator));
  EXPECT_NEAR(after.accuracy, before.accuracy / 2, 0.1);
  EXPECT_NEAR(after.confidence, before.confidence / 2, 0.1);
  EXPECT_TRUE(std::isfinite(after.doc));
}

TEST(AccuracyEstimator, RefusesASourceWithAnswersThatAreNoNumbers) {
  auto frames = honest(100, 2, 1, 1);
  frames[30].logits[2] = NAN;
  const auto estimator = AccuracyEstimator::create(frames, looking(0));
  EXPECT_EQ(estimator.status().code(), Code::kInvalidArgument);
  EXPECT_NE(estimator.status().message().find("image 30"), std::string::npos);
}

TEST(AccuracyEstimator, FindsTheTemperature) {
  for (const double temperature : {0.5, 1.0, 3.0}) {
    const auto estimator = AccuracyEstimator::create(honest(4000, 2, temperature, 1), looking(0));
    ASSERT_TRUE(estimator.ok());
    EXPECT_NEAR(estimator->temperature(), temperature, 0.1 * temperature);
  }
}

TEST(AccuracyEstimator, IsRightOnTheSourceAndFollowsWhatTheModelIsLessSureOf) {
  const auto source = honest(4000, 3, 2, 1);
  const auto estimator = AccuracyEstimator::create(source, looking(0));
  ASSERT_TRUE(estimator.ok());
  const auto same = estimator->estimate(looking(0), sure(source, *estimator));
  EXPECT_NEAR(same.atc, accuracy(source), 0.001);
  EXPECT_NEAR(same.doc, accuracy(source), 0.001);
  EXPECT_NEAR(same.accuracy, accuracy(source), 0.001);
  double before = 0;
  for (const double spread : {1.0, 2.0, 4.0}) {
    const auto other = honest(4000, spread, 2, 2);
    const auto estimate = estimator->estimate(looking(0), sure(other, *estimator));
    EXPECT_NEAR(estimate.doc, accuracy(other), 0.03) << spread;
    // Sees the same, but makes more of it.
    EXPECT_GT(estimate.atc, before + 0.05) << spread;
    before = estimate.atc;
  }
}

TEST(AccuracyEstimator, ADomainIsCorrectedAsThoseThatLookLikeIt) {
  auto made = AccuracyEstimator::create(honest(4000, 3, 1, 1), looking(0));
  ASSERT_TRUE(made.ok());
  AccuracyEstimator& estimator = *made;
  estimator.learn(looking(2), honest(2000, 3, 1, 3, 0.5));  // sure of itself, and often wrong
  const auto alike = honest(2000, 3, 1, 4, 0.5), source = honest(2000, 3, 1, 5);
  const auto near = estimator.estimate(looking(2.05F), sure(alike, estimator));
  EXPECT_GT(near.atc, accuracy(alike) + 0.25);
  EXPECT_NEAR(near.accuracy, accuracy(alike), 0.06);
  EXPECT_NEAR(estimator.estimate(looking(0.05F), sure(source, estimator)).accuracy, accuracy(source), 0.03);
}

TEST(AccuracyEstimator, StandsModelsThatAreNeverOrAlwaysRight) {
  std::vector<JudgedFrame> frames(60, {{0, 3, 1}, 1});
  const auto perfect = AccuracyEstimator::create(frames, looking(0));
  ASSERT_TRUE(perfect.ok());
  EXPECT_EQ(perfect->estimate(looking(0), sure(frames, *perfect)).accuracy, 1);
  for (JudgedFrame& frame : frames) frame.label = 0;
  const auto hopeless = AccuracyEstimator::create(frames, looking(0));
  ASSERT_TRUE(hopeless.ok());
  EXPECT_EQ(hopeless->estimate(looking(0), sure(frames, *hopeless)).accuracy, 0);
  frames.resize(49);
  const auto few = AccuracyEstimator::create(frames, looking(0));
  EXPECT_EQ(few.status().code(), Code::kInvalidArgument);
  EXPECT_NE(few.status().message().find("49 labelled images"), std::string::npos);
}

}  // namespace
}  // namespace limber::adapt
