// Who says how busy this machine is: the machine (linux_sensor.h), or a recording of one (trace.h).
#pragma once

#include "base/status.h"
#include "device/sample.h"

namespace limber {

// Use from one thread.
class DeviceSensor {
 public:
  virtual ~DeviceSensor() = default;
  // How it is now. Later samples have a later time_s.
  virtual Result<DeviceSample> sample() = 0;
};

}  // namespace limber
