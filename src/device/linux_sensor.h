// How busy this machine is, from what Linux tells about it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "device/gpu.h"
#include "device/sensor.h"

namespace limber {

struct LinuxSensorOptions {
  std::string root;                             // folder that the machine's /proc and /sys are in
  std::string gpu_library = kNvmlLibrary;       // empty: do not look for a GPU
  int gpu = 0;                                  // which one
  std::function<double()> clock = now_seconds;  // for tests
};

// Keeps the files it needs open: a sample costs a reading of each (30 microseconds in all on a small
// machine) and allocates nothing. What a sensor says of "since the last sample" starts when it is made.
class LinuxSensor : public DeviceSensor {
 public:
  explicit LinuxSensor(const LinuxSensorOptions& options = {});
  ~LinuxSensor() override;
  // Never fails: what is not told is empty.
  Result<DeviceSample> sample() override;

 private:
  struct Files;
  std::unique_ptr<Files> files_;
  std::unique_ptr<Gpu> gpu_;
  std::function<double()> clock_;
};

}  // namespace limber
