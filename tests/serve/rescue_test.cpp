#include "serve/rescue.h"

#include <gtest/gtest.h>

#include <vector>

namespace limber {
namespace {

double longest(const std::vector<Waiting>& queue, int workers, double stall_s = 0,
               double quickest_s = 0.001) {
  return longest_turn(queue, workers, stall_s, quickest_s);
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

}  // namespace
}  // namespace limber
