#include "runtime/plan.h"

#include <algorithm>

namespace limber {

size_t Plan::num_reorders() const {
  return static_cast<size_t>(
      std::count_if(steps.begin(), steps.end(), [](const Step& s) { return s.node == kNoNode; }));
}

size_t Plan::memory_bytes() const {
  // As measured on networks of 100 to 800 steps: pages of oneDNN, then code and descriptions of each step.
  constexpr size_t kFixed = size_t{8} << 20, kStep = size_t{26} << 10;
  std::vector<bool> read(slots.size(), false);
  for (const Step& step : steps) {
    for (int slot : step.inputs) {
      if (slot >= 0) read[static_cast<size_t>(slots[static_cast<size_t>(slot)].root)] = true;
    }
  }
  size_t total = arena_bytes + kFixed + kStep * steps.size();
  for (size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    if (slot.root != static_cast<int>(i) || slot.storage == Storage::kArena) continue;
    if (slot.storage != Storage::kStatic || read[i]) total += slot.bytes;
  }
  return total;
}

std::string Plan::text() const {
  std::string out = fmt::format("plan {} threads={} steps={} reorders={} arena={} live={}\n", graph.name,
                                threads, steps.size(), num_reorders(), arena_bytes, live_bytes);
  const auto slot_text = [&](int index) {
    if (index < 0) return std::string("_");
    const Slot& slot = slots[static_cast<size_t>(index)];
    return fmt::format("{}@{}", slot.type.to_string(), backends.front()->layout_name(slot.layout));
  };
  for (size_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    out += fmt::format("{:4} {:<14} {:<28} ", s, step.op, step.impl);
    for (int slot : step.inputs) {
      if (slot >= 0 && slots[static_cast<size_t>(slot)].storage != Storage::kStatic)
        out += slot_text(slot) + " ";
    }
    out += "->";
    for (int slot : step.outputs) out += " " + slot_text(slot);
    out += fmt::format("  \"{}\"", step.name);
    if (!step.reason.empty()) out += "  because " + step.reason;
    out += "\n";
  }
  return out;
}

Status check_parameters(const Graph& graph, const Parameters& params) {
  for (const Value& value : graph.values()) {
    if (value.role != Role::kParameter && value.role != Role::kState) continue;
    LIMBER_ASSIGN(const TensorType type, params.type(value.name));
    if (type != value.type) {
      return invalid("parameter '{}': the graph wants {}, it is {}", value.name, value.type.to_string(),
                     type.to_string());
    }
  }
  return {};
}

}  // namespace limber
