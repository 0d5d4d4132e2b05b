#include "serve/rescue.h"

#include <gtest/gtest.h>

#include <vector>

namespace limber {
namespace {

double longest(const std::vector<Waiting>& queue, int workers, double stall_s = 0,
               double quickest_s = 0.001) {
  LongestTurn turn(workers, stall_s, quickest_s);
  for (const Waiting& one : queue) turn.add(one);
  return turn.seconds();
}

TEST(Rescue, OneThatWaitsAloneMayTakeWhatItHasLeft) {
  EXPECT_DOUBLE_EQ(longest({{.left_s = 0.010}}, 1), 0.010);
  EXPECT_DOUBLE_EQ(longest({{.left_s = 0.010, .rows = 4}}, 1), 0.0025);
  EXPECT_DOUBLE_EQ(longest({{.left_s = 0.010}}, 1, 0.003), 0.007);
}

TEST(Rescue, ThoseBehindGetTheirShare) {
  // Five that came together: each may take a fifth, or five of two workers' turns.
  const std::vector<Waiting> burst(5, {.left_s = 0.015});
  EXPECT_DOUBLE_EQ(longest(burst, 1), 0.003);
  EXPECT_DOUBLE_EQ(longest(burst, 2), 0.005);
  // Who came later has more left.
  EXPECT_DOUBLE_EQ(longest({{.left_s = 0.006}, {.left_s = 0.010}}, 1), 0.005);
  EXPECT_DOUBLE_EQ(longest({{.left_s = 0.006}, {.left_s = 0.020}}, 1), 0.006);
}

TEST(Rescue, WhoCannotBeSavedDoesNotHurryOthers) {
  EXPECT_DOUBLE_EQ(longest({{.left_s = -0.001}, {.left_s = 0.010}}, 1), 0.005);
  EXPECT_DOUBLE_EQ(longest({{.left_s = 0.010}, {.left_s = 0.0012}}, 1), 0.010);
}

// Of 1, 2 and 4 ms for each row.
std::optional<size_t> variant(size_t active, double left_s, double turn_s, bool others = true, int64_t rows = 1,
                              const Slowdown& slowdown = {}) {
  const auto times = [rows](size_t i) {
    const double row_s = 0.001 * static_cast<double>(1 << i);
    return VariantTimes{row_s, row_s * static_cast<double>(rows)};
  };
  return variant_for_head({{left_s, rows}, turn_s, others, slowdown}, times(active), 3, times);
}

TEST(VariantForHead, TheSlowestByWhichAllAreInTime) {
  EXPECT_EQ(variant(2, 0.010, 0.010), std::nullopt) << "the active one is";
  EXPECT_EQ(variant(2, 0.010, 0.003), 1U) << "for those behind";
  EXPECT_EQ(variant(2, 0.003, 0.010), 1U) << "for itself";
  EXPECT_EQ(variant(2, 0.003, 0.001), 0U);
  EXPECT_EQ(variant(1, 0.010, 0.010), std::nullopt) << "never a slower one than the active";
  EXPECT_EQ(variant(1, 0.0015, 0.010), 0U);
  EXPECT_EQ(variant(2, 0.010, 0.010, true, 4), 1U) << "its rows count";
  EXPECT_EQ(variant(2, 0.010, 0.010, true, 1, {.slowdown = 3}), 1U);
  EXPECT_EQ(variant(2, 0.010, 0.010, true, 1, {.stall_s = 0.007}), 1U);
}

TEST(VariantForHead, WhatIsLateInAnyCaseHoldsNobodyUp) {
  EXPECT_EQ(variant(2, 0.0005, 0.010, false), std::nullopt) << "for the sake of the answer";
  EXPECT_EQ(variant(2, 0.0005, 0.010, true), 0U);
  EXPECT_EQ(variant(2, 0.0015, 0.0005, false), 0U) << "it has a chance";
}

}  // namespace
}  // namespace limber
