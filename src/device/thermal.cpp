#include "device/thermal.h"

#include <algorithm>
#include <cctype>

namespace limber {
namespace {

constexpr double kEverySeconds = 1;              // heat takes seconds to change
constexpr double kLowest = -50, kHighest = 200;  // a sensor that says something else is broken
constexpr size_t kMostFiles = 16;                // zones that are read each time; one is the hottest

// x86_pkg_temp, cpu-thermal, CPU-therm, coretemp, k10temp, zenpower, soc_thermal, bigcore0-thermal ...
bool of_processor(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  return has("cpu") || has("pkg") || has("core") || has("k10temp") || has("zenpower") || has("soc");
}

}  // namespace

Thermometer::Thermometer(const std::string& root) {
  const std::vector<std::string> zones = kernel_entries(root + "/sys/class/thermal", "thermal_zone");
  const auto add = [&](const std::string& path) {
    if (KernelFile file(path); files_.size() < kMostFiles && file.number()) files_.push_back(std::move(file));
  };
  for (const std::string& zone : zones)
    if (of_processor(kernel_text(zone + "/type"))) add(zone + "/temp");
  if (!files_.empty()) return;
  for (const std::string& chip : kernel_entries(root + "/sys/class/hwmon", "hwmon")) {
    if (!of_processor(kernel_text(chip + "/name"))) continue;
    for (const std::string& file : kernel_entries(chip, "temp"))
      if (file.ends_with("_input")) add(file);
  }
  if (!files_.empty()) return;
  for (const std::string& zone : zones) add(zone + "/temp");
}

std::optional<double> Thermometer::read(double time_s) {
  if (asked_ && time_s - *asked_ < kEverySeconds) return degrees_;
  asked_ = time_s;
  degrees_.reset();
  for (const KernelFile& file : files_) {
    const auto thousandths = file.number();
    if (!thousandths) continue;
    const double degrees = *thousandths / 1000;
    if (degrees < kLowest || degrees > kHighest) continue;
    degrees_ = std::max(degrees_.value_or(degrees), degrees);
  }
  return degrees_;
}

}  // namespace limber
