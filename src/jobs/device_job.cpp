#include "jobs/device_job.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "device/forecast.h"
#include "device/linux_sensor.h"
#include "device/trace.h"
#include "jobs/output.h"

namespace limber {
namespace {

constexpr double kShortestInterval = 0.01, kLongestInterval = 3600;  // shorter than a tick of the kernel
constexpr double kLookSeconds = 0.05;                                // at the wish to stop

// False when it is to stop.
bool wait_until(double time_s, const JobControl& control) {
  for (double left = time_s - now_seconds(); left > 0; left = time_s - now_seconds()) {
    if (control.stop_asked()) return false;
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, kLookSeconds)));
  }
  return !control.stop_asked();
}

// Turns samples into readings, and readings into the report.
class Reader {
 public:
  explicit Reader(const DeviceJobOptions& options)
      : options_(options),
        load_({.horizon = options.forecast_steps}),
        others_({.horizon = options.forecast_steps}) {}

  DeviceReading read(const DeviceSample& sample) {
    DeviceReading reading{.sample = sample};
    reading.load = follow(load_, load_index(sample, LoadOf::kEverybody, options_.weights));
    reading.others = follow(others_, load_index(sample, LoadOf::kOthers, options_.weights));
    if (last_ && last_->energy_j && sample.energy_j && sample.time_s > last_->time_s)
      reading.power_w = std::max(0.0, *sample.energy_j - *last_->energy_j) / (sample.time_s - last_->time_s);
    if (!last_) first_time_ = sample.time_s;
    last_ = sample;
    ++report_.readings;
    report_.seconds = sample.time_s - first_time_;
    if (reading.load) {
      sum_ += reading.load->now;
      report_.mean_load = sum_ / ++loads_;
      report_.highest_load = std::max(report_.highest_load, reading.load->now);
    }
    report_.forecast_error = load_.model_error();
    report_.stay_error = load_.naive_error();
    return reading;
  }
  const DeviceReport& report() const { return report_; }

 private:
  std::optional<LoadReading> follow(LoadForecast& forecast, const std::optional<double>& load) const {
    if (!load) return std::nullopt;
    forecast.add(*load);
    return LoadReading{*load, forecast.predict(options_.forecast_steps), forecast.better_than_naive()};
  }

  const DeviceJobOptions& options_;
  LoadForecast load_, others_;
  std::optional<DeviceSample> last_;
  double first_time_ = 0, sum_ = 0, loads_ = 0;
  DeviceReport report_;
};

bool done(const DeviceJobOptions& options, const DeviceReport& report) {
  return options.readings > 0 && report.readings >= options.readings;
}

Result<DeviceReport> replay(const DeviceJobOptions& options, const OnReading& on_reading,
                            const JobControl& control) {
  LIMBER_ASSIGN(TraceSensor trace, TraceSensor::open(options.replay));
  Reader reader(options);
  const double start = now_seconds();
  std::optional<double> first;
  while (trace.left() > 0 && !done(options, reader.report()) && !control.stop_asked()) {
    LIMBER_ASSIGN(const DeviceSample sample, trace.sample());
    if (!first) first = sample.time_s;
    const double since = sample.time_s - *first;
    if (options.seconds > 0 && since > options.seconds) break;
    if (options.replay_paced && !wait_until(start + since, control)) break;
    on_reading(reader.read(sample));
  }
  return reader.report();
}

Result<DeviceReport> watch(const DeviceJobOptions& options, const OnReading& on_reading,
                           const JobControl& control) {
  std::optional<TraceWriter> trace;
  if (!options.record.empty()) {
    LIMBER_TRY(check_output_parent(options.record));
    LIMBER_ASSIGN(trace, TraceWriter::create(options.record));
  }
  LinuxSensor sensor;
  Reader reader(options);
  const double start = now_seconds();
  for (int64_t turn = 1; !done(options, reader.report()); ++turn) {
    const double due = static_cast<double>(turn) * options.interval_s;
    const bool last = options.seconds > 0 && due >= options.seconds;
    if (!wait_until(start + (last ? options.seconds : due), control)) break;
    LIMBER_ASSIGN(const DeviceSample sample, sensor.sample());
    if (trace) LIMBER_TRY(trace->add(sample));
    on_reading(reader.read(sample));
    if (last) break;
  }
  if (trace) LIMBER_TRY(trace->sync());
  return reader.report();
}

}  // namespace

Status check(const DeviceJobOptions& options) {
  if (!(options.interval_s >= kShortestInterval && options.interval_s <= kLongestInterval))
    return invalid("interval_s is {}; expected {} to {}", options.interval_s, kShortestInterval,
                   kLongestInterval);
  if (!(options.seconds >= 0) || !std::isfinite(options.seconds))
    return invalid("seconds is {}; expected 0 or more", options.seconds);
  if (options.readings < 0) return invalid("readings is {}; expected 0 or more", options.readings);
  const std::string forecast = ForecastOptions{.horizon = options.forecast_steps}.problem();
  if (!forecast.empty()) return invalid("forecast_steps: {}", forecast);
  if (const std::string weights = options.weights.problem(); !weights.empty()) return invalid("{}", weights);
  if (!options.record.empty() && !options.replay.empty())
    return invalid("record and replay are both given; a trace that is played back is recorded already");
  return {};
}

DeviceFacts device_facts() { return {cpu_info(), host_info(), cpu_caches()}; }

Result<DeviceReport> run_device(const DeviceJobOptions& options, const OnReading& on_reading,
                                const JobControl& control) {
  LIMBER_TRY(check(options));
  return options.replay.empty() ? watch(options, on_reading, control) : replay(options, on_reading, control);
}

}  // namespace limber
