#include "sched/expectations.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace limber::sched {
namespace {

Distance at(double here) {
  return [here](int64_t domain) { return std::abs(static_cast<double>(domain) - here); };
}

TEST(Expectations, AreTheGuessUntilSomethingHappened) {
  const Expectations expectations(2);
  const Expected found = expectations.expect(1, {0.4, 0.6}, at(0));
  EXPECT_DOUBLE_EQ(found.before, 0.4);
  EXPECT_DOUBLE_EQ(found.after, 0.6);
}

TEST(Expectations, TheSameDomainCountsMostAndFarOnesHardly) {
  Expectations expectations(1);
  expectations.happened(3, 0, {0.4, 0.6}, 0.6, 0.8);
  const double same = expectations.expect(0, {0.4, 0.6}, at(3)).after;
  const double near = expectations.expect(0, {0.4, 0.6}, at(3.3)).after;
  const double far = expectations.expect(0, {0.4, 0.6}, at(20)).after;
  EXPECT_GT(same, 0.75);
  EXPECT_LT(same, 0.8);  // one observation is noisy
  EXPECT_GT(same, near);
  EXPECT_GT(near, far);
  EXPECT_NEAR(far, 0.6, 0.01);
}

TEST(Expectations, AnotherOptionsErrorsCountALittle) {
  Expectations expectations(2);
  expectations.happened(0, 0, {0.5, 0.6}, 0.3, std::nullopt);
  const Expected other = expectations.expect(1, {0.5, 0.6}, at(0));
  EXPECT_LT(other.before, 0.48);
  EXPECT_GT(other.before, 0.35);
  EXPECT_DOUBLE_EQ(other.after, 0.6);
}

TEST(Expectations, WhatHappenedLatelyCountsMore) {
  Expectations expectations(1);
  expectations.happened(0, 0, {0.5, 0.5}, std::nullopt, 0.3);
  expectations.happened(0, 0, {0.5, 0.5}, std::nullopt, 0.7);
  EXPECT_GT(expectations.expect(0, {0.5, 0.5}, at(0)).after, 0.5);
}

TEST(Expectations, StayAccuraciesAndForget) {
  Expectations expectations(1);
  for (int i = 0; i < 1000; ++i) expectations.happened(0, 0, {0.5, 0.5}, 1.0, 0.0);
  const Expected found = expectations.expect(0, {0.9, 0.1}, at(0));
  EXPECT_EQ(found.before, 1);
  EXPECT_EQ(found.after, 0);
}

TEST(Expectations, GetBetterByWhatHappens) {
  Random random(1);
  Expectations expectations(1);
  double early = 0, late = 0;
  for (int i = 0; i < 200; ++i) {
    const auto domain = static_cast<int64_t>(random.below(5));
    const double real = 0.4 + 0.1 * static_cast<double>(domain) + 0.02 * random.normal();
    const double told = expectations.expect(0, {0.5, 0.5}, at(static_cast<double>(domain))).after;
    (i < 5 ? early : late) += std::abs(told - real) / (i < 5 ? 5 : 195);
    expectations.happened(domain, 0, {0.5, 0.5}, std::nullopt, real);
  }
  EXPECT_LT(late, 0.06);
  EXPECT_LT(late, early);
}

}  // namespace
}  // namespace limber::sched
