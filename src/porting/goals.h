// What devices can do and what models on them shall keep: the goals of a porting. docs/porting.md has the
// file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace limber {

inline constexpr double kParameterBytes = sizeof(float);

// What a model takes, on whatever device.
struct PortCost {
  double operations = 0;   // of one run; a multiply-add counts two
  double moved_bytes = 0;  // of one run: what operators read and write
  double memory = 0;       // bytes of a run: parameters and what lies between layers
  double parameters = 0;
};

struct DeviceProfile {
  std::string name;
  double operations_per_s = 0;
  double bytes_per_s = 0;
  double memory = std::numeric_limits<double>::infinity();  // bytes
  bool here = false;  // this machine: its figures come from a measurement, and so do latencies

  // Of one sample: everything is computed, and everything is moved, one after the other.
  double latency(const PortCost& cost) const {
    return cost.operations / operations_per_s + cost.moved_bytes / bytes_per_s;
  }
};

// At most, but for the accuracy; what is missing does not matter.
struct GoalTargets {
  std::optional<double> latency;     // seconds
  std::optional<double> memory;      // bytes
  std::optional<double> parameters;  // how many
  std::optional<double> accuracy;    // 0..1, at least
};

struct Goal {
  std::string name;  // unique in a file, and fit for the name of a folder
  std::string path;  // where the file has it: "goals[3]"
  DeviceProfile device;
  GoalTargets targets;
};

// The constraints of a goal that a model gets below by becoming smaller.
enum class Constraint : uint8_t { kLatency, kMemory, kParameters };
inline constexpr size_t kConstraints = 3;
std::string_view constraint_name(Constraint constraint);  // "latency", ..: as in the file
// 12.5 ms, 3.2 MiB, 210000
std::string show_figure(Constraint constraint, double value);

// By constraint. A device's own memory is a limit like a target's.
using Figures = std::array<double, kConstraints>;
Figures limits_of(const Goal& goal);  // infinite: none
Figures figures_of(const PortCost& cost, const DeviceProfile& device);
// Within all limits, up to the rounding of sums.
bool keeps(const Figures& figures, const Figures& limits);

// A goal as bounds of what a model takes whatever the device: who keeps a goal's bounds keeps the goal of
// every other whose bounds are nowhere smaller. A latency L on a device of c operations and b bytes a second
// allows operations up to L c and traffic up to L b, in exchange for each other.
inline constexpr size_t kBounds = 4;  // operations, traffic, memory, parameters
using Bounds = std::array<double, kBounds>;
Bounds bounds_of(const Goal& goal);  // infinite: none
Bounds bounds_of(const PortCost& cost);

// Untrusted. kInvalidArgument with the path of the first thing that is wrong: "goals[3].targets.latency: ..".
// `read_profile` gives the text of a measured profile that the file refers to by name.
using ReadProfile = std::function<Result<std::string>(const std::string& file)>;
Result<std::vector<Goal>> parse_goals(std::string_view text, const ReadProfile& read_profile);

// A measured profile, as `limber device --profile` writes it and parse_goals() takes it.
std::string format_profile(const DeviceProfile& profile);

}  // namespace limber
