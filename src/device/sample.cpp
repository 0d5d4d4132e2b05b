#include "device/sample.h"

#include <fmt/core.h>

#include <cmath>

namespace limber {
namespace {

struct Range {
  const char* name;
  const std::optional<double>& value;
  double low, high;
};

}  // namespace

std::string DeviceSample::problem() const {
  if (!std::isfinite(time_s)) return "'time_s' is not a number";
  const double most = 1e18;  // joules, watts and cores: finite is enough
  const Range ranges[] = {{"cpu_busy", cpu_busy, 0, 1},
                          {"cpu_own", cpu_own, 0, 1},
                          {"cpu_others", cpu_others, 0, 1},
                          {"clock_share", clock_share, 0, 1},
                          {"memory_used", memory_used, 0, 1},
                          {"cpu_pressure", cpu_pressure, 0, 1},
                          {"cpu_stalled", cpu_stalled, 0, 1},
                          {"memory_pressure", memory_pressure, 0, 1},
                          {"memory_stalled", memory_stalled, 0, 1},
                          {"cpu_limit", cpu_limit, 0, most},
                          {"quota_used", quota_used, 0, 1},
                          {"throttled", throttled, 0, 1},
                          {"temperature_c", temperature_c, -273.15, 1000},
                          {"gpu_busy", gpu_busy, 0, 1},
                          {"gpu_memory_used", gpu_memory_used, 0, 1},
                          {"gpu_power_w", gpu_power_w, 0, most},
                          {"energy_j", energy_j, 0, most},
                          {"gpu_energy_j", gpu_energy_j, 0, most}};
  for (const auto& [name, value, low, high] : ranges) {
    if (value && !(*value >= low && *value <= high))
      return fmt::format("'{}' is {}; expected {} to {}", name, *value, low, high);
  }
  return {};
}

}  // namespace limber
