// How much of the time tasks that could run waited for the processor or for memory.
#pragma once

#include <optional>
#include <string>

#include "device/kernel_file.h"

namespace limber {

struct PressureShares {
  std::optional<double> recent;   // over the last ten seconds
  std::optional<double> stalled;  // since the last reading
};

class Pressure {
 public:
  explicit Pressure(const std::string& path) : file_(path) {}
  PressureShares read(double time_s);

 private:
  KernelFile file_;
  CounterDelta time_, total_;
};

}  // namespace limber
