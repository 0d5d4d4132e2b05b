// The energy that this machine's own sensors count.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/kernel_file.h"

namespace limber {

// The first kind that is there and may be read: counters of the processors (RAPL; many systems let only root
// read them), counters of other chips, then meters of power (INA and the like), whose readings are added up
// over time.
class EnergyCounter {
 public:
  explicit EnergyCounter(const std::string& root);
  // Joules since the first reading; empty when there is no sensor.
  std::optional<double> read(double time_s);

 private:
  struct Counter {
    KernelFile file;              // microjoules
    std::optional<double> range;  // where it starts again from 0
    std::optional<double> last;
  };
  // Microwatts, or volts and amperes in thousandths.
  struct Meter {
    KernelFile power, volts, amperes;
    std::optional<double> watts() const;
  };
  void find_rapl(const std::string& root);
  void find_chips(const std::string& root);
  bool find_rails(const std::string& chip);
  void read_counters();
  void read_meters(double time_s);

  std::vector<Counter> counters_;
  std::vector<Meter> meters_;
  std::optional<double> last_watts_, last_time_;
  double joules_ = 0;
};

}  // namespace limber
