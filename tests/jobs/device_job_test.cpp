#include "jobs/device_job.h"

#include <cmath>
#include <numbers>

#include "device/trace.h"
#include "tests/data/files.h"

namespace limber {
namespace {

// A machine whose processor follows `busy`, one sample a second, at 10 W.
template <typename Busy>
std::string trace_of(const Folder& folder, int samples, const Busy& busy) {
  const std::string path = folder / "trace.jsonl";
  auto writer = TraceWriter::create(path);
  EXPECT_TRUE(writer.ok());
  for (int t = 0; t < samples; ++t) {
    DeviceSample sample{.time_s = 1000.0 + t};
    sample.cpu_busy = busy(t);
    sample.cpu_others = busy(t) / 2;
    sample.energy_j = 10.0 * t;
    EXPECT_TRUE(writer->add(sample).ok());
  }
  return path;
}

Result<DeviceReport> play(DeviceJobOptions options, std::vector<DeviceReading>& seen) {
  options.replay_paced = false;
  return run_device(options, [&](const DeviceReading& reading) { seen.push_back(reading); });
}

TEST(DeviceJob, PlaysATraceBackWithItsForecast) {
  const Folder folder;
  const auto wave = [](int t) { return 0.5 + 0.4 * std::sin(2 * std::numbers::pi * t / 20); };
  std::vector<DeviceReading> seen;
  const auto report = play({.forecast_steps = 3, .replay = trace_of(folder, 100, wave)}, seen);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(seen.size(), 100u);
  EXPECT_EQ(report->readings, 100);
  EXPECT_DOUBLE_EQ(report->seconds, 99);
  EXPECT_NEAR(report->mean_load, 0.5, 1e-9);
  EXPECT_NEAR(report->highest_load, 0.9, 1e-9);
  EXPECT_LT(report->forecast_error, report->stay_error);
  EXPECT_FALSE(seen[3].load->fitted);
  EXPECT_FALSE(seen[0].power_w);
  EXPECT_DOUBLE_EQ(seen[1].power_w.value(), 10);
  EXPECT_DOUBLE_EQ(seen[90].load->now, wave(90));
  EXPECT_TRUE(seen[90].load->fitted);
  EXPECT_NEAR(seen[90].load->ahead, wave(93), 5e-3);
  EXPECT_NEAR(seen[90].others->ahead, wave(93) / 2, 5e-3);
}

TEST(DeviceJob, EndsWhenItIsAskedTo) {
  const Folder folder;
  const std::string trace = trace_of(folder, 50, [](int) { return 0.5; });
  std::vector<DeviceReading> seen;
  EXPECT_EQ(play({.readings = 7, .replay = trace}, seen)->readings, 7);
  EXPECT_EQ(play({.seconds = 10, .replay = trace}, seen)->readings, 11);
  std::atomic<bool> stop = false;
  const auto report = run_device({.replay = trace, .replay_paced = false},
                                 [&](const DeviceReading& reading) { stop = reading.sample.time_s >= 1004; },
                                 {.stop = &stop});
  EXPECT_EQ(report->readings, 5);
  stop = true;
  EXPECT_EQ(run_device({}, [](const DeviceReading&) {}, {.stop = &stop})->readings, 0);
}

TEST(DeviceJob, RecordsWhatItSaw) {
  const Folder folder;
  const std::string path = folder / "trace.jsonl";
  std::vector<DeviceReading> seen, again;
  DeviceJobOptions options{.interval_s = 0.03, .readings = 3, .record = path};
  ASSERT_EQ(play(options, seen)->readings, 3);
  ASSERT_EQ(play({.replay = path}, again)->readings, 3);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(format_fields(again[i].sample), format_fields(seen[i].sample)) << i;
  const auto twice = play(options, seen);
  expect_failure(twice, Code::kInvalidArgument, {path, "is there already"});
  EXPECT_EQ(read_trace(path)->size(), 3u) << "and nothing was added to it";
}

TEST(DeviceJob, SecondsEndAWatch) {
  std::vector<DeviceReading> seen;
  ASSERT_TRUE(play({.interval_s = 0.04, .seconds = 0.1}, seen).ok());
  EXPECT_EQ(seen.size(), 3u) << "after 0.04, 0.08 and 0.1 s";
}

TEST(DeviceJob, RefusesWhatCannotWork) {
  const auto refused = [](const DeviceJobOptions& options, const std::string& part) {
    const auto report = run_device(options, [](const DeviceReading&) {});
    expect_failure(report, Code::kInvalidArgument, {part});
  };
  refused({.interval_s = 0}, "interval_s is 0");
  refused({.interval_s = std::nan("")}, "interval_s is nan");
  refused({.seconds = -1}, "seconds is -1");
  refused({.readings = -1}, "readings is -1");
  refused({.forecast_steps = 0}, "forecast_steps");
  refused({.weights = {.cpu = -1}}, "weights");
  refused({.record = "a", .replay = "b"}, "both given");
  const Folder folder;
  std::vector<DeviceReading> seen;
  EXPECT_EQ(play({.replay = folder / "none"}, seen).status().code(), Code::kNotFound);
  EXPECT_EQ(play({.replay = folder.write("bad", "x\n")}, seen).status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace limber
