// How busy this machine is, and how busy it will be: watched for a while, recorded, or played back.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/caches.h"
#include "device/cpu.h"
#include "device/host.h"
#include "device/load_index.h"
#include "device/sample.h"
#include "jobs/job.h"

namespace limber {

struct DeviceJobOptions {
  double interval_s = 1;     // between readings
  double seconds = 0;        // to watch; 0: no limit
  int64_t readings = 0;      // to take; 0: no limit
  int forecast_steps = 5;    // readings ahead
  LoadWeights weights;       // of the load index
  std::string record;        // new file for a trace; empty: none
  std::string replay;        // trace to read instead of this machine; empty: this machine
  bool replay_paced = true;  // at the speed it was recorded with; otherwise as fast as it is read
};
Status check(const DeviceJobOptions& options);

// What does not change while it is watched.
struct DeviceFacts {
  CpuInfo cpu;
  HostInfo host;
  std::vector<CacheLevel> caches;
};
DeviceFacts device_facts();

// A load index now, and as many readings ahead as were asked for.
struct LoadReading {
  double now = 0, ahead = 0;
  bool fitted = false;  // the forecast follows a pattern; otherwise it is that load stays as it is
};

struct DeviceReading {
  DeviceSample sample;
  std::optional<LoadReading> load, others;  // of everybody, and without this process
  std::optional<double> power_w;            // from energy since the last reading
};

struct DeviceReport {
  int64_t readings = 0;
  double seconds = 0;                         // from the first to the last
  double mean_load = 0, highest_load = 0;     // of everybody; 0 where it is not known
  double forecast_error = 0, stay_error = 0;  // lately: of the fitted forecast, and of "it stays as it is"
};

// Ends after `seconds` or `readings`, at the end of a trace, or when it is stopped; the first reading comes
// one interval after the start, as loads are over time. `on_reading` is called for each, from this thread.
using OnReading = std::function<void(const DeviceReading&)>;
Result<DeviceReport> run_device(const DeviceJobOptions& options, const OnReading& on_reading,
                                const JobControl& control = {});

}  // namespace limber
