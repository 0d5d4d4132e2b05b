#include "serve/stats.h"

#include <gtest/gtest.h>

namespace limber {
namespace {

TEST(ServeStats, CountsAndRemembersSeconds) {
  ServeStats stats;
  stats.tick(100, 5000, 0.1, 0.2, "a");
  for (int i = 1; i <= 100; ++i) {
    stats.arrived(100.5);
    stats.done({.latency_s = 0.001 * i,
                .queue_s = 0.0005,
                .compute_s = 0.002,
                .rows = 2,
                .late = i > 90,
                .rescued = i == 1});
  }
  stats.arrived(100.6);
  stats.refused(Refusal::kOverloaded);
  stats.tick(100.7, 5000.7, 0.1, 0.2, "a");
  EXPECT_TRUE(stats.history().empty());
  stats.tick(101, 5001, 0.3, 0.4, "b");

  const auto totals = stats.totals();
  EXPECT_EQ(totals.requests, 101U);
  EXPECT_EQ(totals.answered, 100U);
  EXPECT_EQ(totals.rows, 200U);
  EXPECT_EQ(totals.late, 10U);
  EXPECT_EQ(totals.rescued, 1U);
  EXPECT_EQ(totals.all_refused(), 1U);
  ASSERT_EQ(stats.history().size(), 1U);
  EXPECT_NEAR(*stats.history()[0].p50_s, 0.050, 0.002);
  EXPECT_NEAR(*stats.history()[0].p95_s, 0.095, 0.002);
  EXPECT_EQ(stats.history()[0].rate, 101);
  EXPECT_EQ(stats.history()[0].variant, "b");
  EXPECT_NEAR(stats.window().miss_share, 11.0 / 101, 1e-9);
  EXPECT_NEAR(*stats.window().p99_s, 0.099, 0.002);
}

TEST(ServeStats, HistogramHoldsEveryLatencyOnce) {
  ServeStats stats;
  for (const double latency : {0.0, 0.00025, 0.0003, 9.0, 10.0, 11.0}) stats.done({.latency_s = latency});
  const auto totals = stats.totals();
  EXPECT_EQ(totals.latency.front(), 2U);  // the end of a bucket belongs to it
  EXPECT_EQ(totals.latency[1], 1U);
  EXPECT_EQ(totals.latency[ServeStats::kBuckets.size() - 1], 2U);
  EXPECT_EQ(totals.latency.back(), 1U);
}

TEST(ServeStats, MemoryIsBounded) {
  ServeStats stats;
  for (int second = 0; second < 400; ++second) {
    for (int i = 0; i < 5000; ++i) stats.done({.latency_s = 0.001});
    stats.switched({static_cast<double>(second), "a", "b", "why"}, 0);
    stats.tick(second, second, 0, 0, "a");
  }
  EXPECT_EQ(stats.history().size(), ServeStats::kHistory);
  EXPECT_EQ(stats.switches().size(), ServeStats::kSwitches);
  EXPECT_EQ(stats.switches().back().time, 399);
  EXPECT_EQ(stats.totals().switches, 400U);
}

// Refusals count as missed and have no latency: with thousands of them in a second the sample stays what it
// is.
TEST(ServeStats, RefusalsAreNotInTheSample) {
  ServeStats stats;
  stats.tick(0.5, 0, 0, 0, "a");
  for (int i = 0; i < 5000; ++i) stats.refused(Refusal::kOverloaded);
  for (int i = 0; i < 5000; ++i) stats.done({.latency_s = 0.25});
  stats.tick(2, 0, 0, 0, "a");
  EXPECT_EQ(stats.window().p50_s, 0.25);
  EXPECT_EQ(stats.window().p99_s, 0.25);
  EXPECT_NEAR(stats.window().miss_share, 0.5, 1e-9);
}

TEST(ServeStats, KnowsTheRateWithinASecond) {
  ServeStats stats;
  stats.tick(0.5, 0, 0, 0, "a");
  for (int second = 0; second < 3; ++second) {
    for (int i = 0; i < 100; ++i) stats.arrived(second + 0.5);
    stats.tick(second + 1.5, 0, 0, 0, "a");
  }
  stats.tick(3.6, 0, 0, 0, "a");
  EXPECT_NEAR(stats.rate(), 90, 11);
}

}  // namespace
}  // namespace limber
