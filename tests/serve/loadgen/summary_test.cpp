#include "serve/loadgen/summary.h"

#include <gtest/gtest.h>

namespace limber {
namespace {

LoadRecord record_of(double due, double sent, double done, int status, int variant = -1) {
  LoadRecord record;
  record.due = due;
  record.sent = sent;
  record.done = done;
  record.status = static_cast<int16_t>(status);
  record.variant = static_cast<int16_t>(variant);
  return record;
}

TEST(LoadSummary, PercentilesAreExact) {
  std::vector<double> values;
  for (int i = 1000; i >= 1; --i) values.push_back(i);
  const LatencySummary of = summarize(values);
  EXPECT_EQ(of.count, 1000);
  EXPECT_DOUBLE_EQ(of.p50, 500);
  EXPECT_DOUBLE_EQ(of.p90, 900);
  EXPECT_DOUBLE_EQ(of.p95, 950);
  EXPECT_DOUBLE_EQ(of.p99, 990);
  EXPECT_DOUBLE_EQ(of.p999, 999);
  EXPECT_DOUBLE_EQ(of.max, 1000);
  EXPECT_NEAR(of.mean, 500.5, 1e-9);
  EXPECT_EQ(summarize(std::vector<double>{}).count, 0);
  EXPECT_DOUBLE_EQ(summarize(std::vector<double>{3}).p50, 3);
}

TEST(LoadSummary, EveryRequestIsCountedOnce) {
  constexpr double kNever = LoadRecord::kNever;
  LoadLog log;
  log.seconds = 2;
  log.variants = {"big", "small"};
  log.labels = {1, 2};
  log.records = {
      record_of(0.0, 0.0, 0.010, 200, 0),    // in time
      record_of(0.1, 0.1, 0.130, 200, 1),    // late
      record_of(0.2, 0.2, 0.210, 429),       // refused
      record_of(0.3, 0.3, kNever, 0),        // lost
      record_of(0.4, kNever, kNever, 0),     // no connection
      record_of(1.5, 1.505, 1.510, 200, 0),  // in time, in the second second
      record_of(1.6, 1.6, 1.610, 400),       // malformed, refused
      record_of(1.7, 1.7, 1.710, 200),       // malformed, taken
  };
  log.records[0].predicted = 1;
  log.records[1].row = 1;
  log.records[1].predicted = 1;
  log.records[6].malformed = log.records[7].malformed = true;
  const LoadSummary of = summarize(log, 0.020);
  EXPECT_EQ(of.requests, 6);
  EXPECT_EQ(of.good, 3);
  EXPECT_EQ(of.refused, 1);
  EXPECT_EQ(of.lost, 1);
  EXPECT_EQ(of.unsent, 1);
  EXPECT_EQ(of.good + of.refused + of.lost + of.unsent, of.requests);
  EXPECT_EQ(of.late, 1);
  EXPECT_EQ(of.missed, 4) << "late, refused, lost and never sent";
  EXPECT_DOUBLE_EQ(of.missed_share(), 4.0 / 6);
  EXPECT_EQ(of.malformed, 2);
  EXPECT_EQ(of.malformed_refused, 1);
  EXPECT_EQ(of.statuses, (std::map<int, int64_t>{{200, 3}, {429, 1}}));
  EXPECT_EQ(of.variants, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(of.switches, 2);
  EXPECT_EQ(of.judged, 2) << "of the third good answer the class is unknown";
  EXPECT_EQ(of.right, 1);
  EXPECT_DOUBLE_EQ(*of.accuracy(), 0.5);
  EXPECT_DOUBLE_EQ(of.throughput, 1.5);
  EXPECT_EQ(of.latency.count, 3);
  EXPECT_NEAR(of.latency.max, 0.030, 1e-12);
  EXPECT_NEAR(of.lag.max, 0.005, 1e-12);
  ASSERT_EQ(of.seconds.size(), 2U);
  EXPECT_EQ(of.seconds[0].requests, 5);
  EXPECT_EQ(of.seconds[0].missed, 4);
  EXPECT_EQ(of.seconds[1].requests, 1);
  EXPECT_EQ(of.seconds[1].variant, 0);
  EXPECT_NEAR(of.seconds[1].p90, 0.010, 1e-12) << "counted from when it was due";
}

TEST(LoadSummary, WithoutADeadlineNothingIsLate) {
  LoadLog log;
  log.seconds = 1;
  log.records = {record_of(0, 0, 100, 200), record_of(0, 0, LoadRecord::kNever, 0)};
  const LoadSummary of = summarize(log, 0);
  EXPECT_EQ(of.late, 0);
  EXPECT_EQ(of.missed, 1);
  EXPECT_FALSE(of.accuracy().has_value());
}

}  // namespace
}  // namespace limber
