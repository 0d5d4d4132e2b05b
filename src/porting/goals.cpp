#include "porting/goals.h"

#include <algorithm>
#include <cmath>

#include "base/show.h"

namespace limber {
namespace {

constexpr double kRoundingOfSums = 1e-9;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

std::string_view constraint_name(Constraint constraint) {
  constexpr std::array<std::string_view, kConstraints> kNames = {"latency", "memory", "parameters"};
  return kNames[static_cast<size_t>(constraint)];
}

std::string show_figure(Constraint constraint, double value) {
  if (constraint == Constraint::kLatency) return show_seconds(value);
  if (constraint == Constraint::kMemory) return show_bytes(value);
  return fmt::format("{:.0f}", value);
}

Figures limits_of(const Goal& goal) {
  return {goal.targets.latency.value_or(kInfinite),
          std::min(goal.targets.memory.value_or(kInfinite), goal.device.memory),
          goal.targets.parameters.value_or(kInfinite)};
}

Figures figures_of(const PortCost& cost, const DeviceProfile& device) {
  return {device.latency(cost), cost.memory, cost.parameters};
}

bool keeps(const Figures& figures, const Figures& limits) {
  for (size_t i = 0; i < kConstraints; ++i) {
    if (figures[i] > limits[i] * (1 + kRoundingOfSums)) return false;
  }
  return true;
}

Bounds bounds_of(const Goal& goal) {
  const Figures limits = limits_of(goal);
  const double latency = limits[static_cast<size_t>(Constraint::kLatency)];
  const double memory = limits[static_cast<size_t>(Constraint::kMemory)];
  // Parameters lie in memory, too.
  const double parameters =
      std::min(limits[static_cast<size_t>(Constraint::kParameters)], memory / kParameterBytes);
  return {latency * goal.device.operations_per_s, latency * goal.device.bytes_per_s, memory, parameters};
}

Bounds bounds_of(const PortCost& cost) {
  return {cost.operations, cost.moved_bytes, cost.memory, cost.parameters};
}

}  // namespace limber
