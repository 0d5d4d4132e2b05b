#include "device/energy_counter.h"

#include <algorithm>

namespace limber {
namespace {

std::string name_in(const std::string& path) {
  std::string text = kernel_text(path);
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

bool is_power_meter(const std::string& chip) {
  return chip.starts_with("ina") || chip == "power_meter" || chip == "fam15h_power";
}

}  // namespace

std::optional<double> EnergyCounter::Meter::watts() const {
  if (power.there()) {
    const auto microwatts = power.number();
    return microwatts && *microwatts >= 0 ? std::optional<double>(*microwatts * 1e-6) : std::nullopt;
  }
  const auto millivolts = volts.number(), milliamperes = amperes.number();
  if (!millivolts || !milliamperes) return std::nullopt;
  return std::max(0.0, *millivolts * *milliamperes * 1e-6);
}

EnergyCounter::EnergyCounter(const std::string& root) {
  find_rapl(root);
  if (counters_.empty()) find_chips(root);
}

// Zones lie in zones: a package holds its cores, but not the memory beside it.
void EnergyCounter::find_rapl(const std::string& root) {
  for (const std::string& zone : kernel_entries(root + "/sys/class/powercap", "intel-rapl:")) {
    const std::string name = name_in(zone + "/name");
    if (!name.starts_with("package") && name != "dram") continue;
    Counter counter{.file = KernelFile(zone + "/energy_uj")};
    if (!counter.file.number()) continue;
    counter.range = KernelFile(zone + "/max_energy_range_uj").number();
    counters_.push_back(std::move(counter));
  }
}

void EnergyCounter::find_chips(const std::string& root) {
  const std::vector<std::string> chips = kernel_entries(root + "/sys/class/hwmon", "hwmon");
  for (const std::string& chip : chips) {
    if (name_in(chip + "/name") != "amd_energy") continue;
    for (const std::string& path : kernel_entries(chip, "energy")) {
      // "Ecore" counters are in those of their sockets.
      if (!path.ends_with("_input") ||
          !name_in(path.substr(0, path.size() - 5) + "label").starts_with("Esocket"))
        continue;
      Counter counter{.file = KernelFile(path)};
      if (counter.file.number()) counters_.push_back(std::move(counter));
    }
  }
  if (!counters_.empty()) return;
  for (const std::string& chip : chips)
    if (is_power_meter(name_in(chip + "/name")) && find_rails(chip)) break;
}

// True when one of them feeds all others, as its label says: it counts alone.
bool EnergyCounter::find_rails(const std::string& chip) {
  const size_t before = meters_.size();
  const auto add = [&](Meter meter, const std::string& label) {
    if (!meter.watts()) return false;
    const bool whole = label == "VDD_IN" || label == "POM_5V_IN";
    if (whole) meters_.clear();
    meters_.push_back(std::move(meter));
    return whole;
  };
  for (const std::string& path : kernel_entries(chip, "power")) {
    const std::string rail = path.substr(0, path.rfind('_'));
    const bool average = path.ends_with("_average") && !KernelFile(rail + "_input").there();
    if (!path.ends_with("_input") && !average) continue;
    if (add({.power = KernelFile(path)}, name_in(rail + "_label"))) return true;
  }
  if (meters_.size() > before) return false;  // of the same rails
  for (const std::string& path : kernel_entries(chip, "curr")) {
    if (!path.ends_with("_input")) continue;
    const std::string number = path.substr(chip.size() + 5, path.size() - chip.size() - 11);
    Meter meter{.volts = KernelFile(chip + "/in" + number + "_input"), .amperes = KernelFile(path)};
    if (add(std::move(meter), name_in(chip + "/in" + number + "_label"))) return true;
  }
  return false;
}

void EnergyCounter::read_counters() {
  for (Counter& counter : counters_) {
    const auto now = counter.file.number();
    if (now && counter.last) {
      double grown = *now - *counter.last;
      if (grown < 0) grown = counter.range ? grown + *counter.range : 0;
      joules_ += std::max(0.0, grown) * 1e-6;
    }
    if (now) counter.last = now;
  }
}

void EnergyCounter::read_meters(double time_s) {
  std::optional<double> watts;
  for (const Meter& meter : meters_)
    if (const auto one = meter.watts()) watts = watts.value_or(0) + *one;
  if (watts && last_watts_ && last_time_)
    joules_ += std::max(0.0, time_s - *last_time_) * (*watts + *last_watts_) / 2;
  last_watts_ = watts;
  last_time_ = time_s;
}

std::optional<double> EnergyCounter::read(double time_s) {
  if (counters_.empty() && meters_.empty()) return std::nullopt;
  read_counters();
  read_meters(time_s);
  return joules_;
}

}  // namespace limber
