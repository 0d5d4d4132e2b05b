#include "train/constant_prefix.h"

#include <algorithm>

namespace limber {
namespace {

enum class Kind : uint8_t {
  kStatic,    // parameters that stay as they are, constants, and what is computed from them alone
  kConstant,  // depends on the images as well
  kOther,
};

std::vector<Kind> kinds_of(const Graph& step) {
  const std::vector<bool> updated = step.updated();
  std::vector<Kind> kinds(step.num_values(), Kind::kOther);
  for (uint32_t v = 0; v < step.num_values(); ++v) {
    const Value& value = step.values()[v];
    if (value.producer != kNoNode || value.role == Role::kInput) continue;
    kinds[v] = updated[v] ? Kind::kOther : Kind::kStatic;
  }
  kinds[step.inputs()[0].index] = Kind::kConstant;
  for (const Node& node : step.nodes()) {
    Kind kind = Kind::kStatic;
    for (ValueId v : node.inputs) {
      if (v != kNoValue) kind = std::max(kind, kinds[v.index]);
    }
    for (ValueId v : node.outputs) {
      if (v != kNoValue) kinds[v.index] = kind;
    }
  }
  return kinds;
}

// Computed constants that something else reads.
std::vector<ValueId> frontier_of(const Graph& step, const std::vector<Kind>& kinds) {
  std::vector<bool> read(step.num_values(), false);
  for (const Node& node : step.nodes()) {
    const bool constant = std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) {
      return v == kNoValue || kinds[v.index] == Kind::kConstant;
    });
    if (constant) continue;
    for (ValueId v : node.inputs) {
      if (v != kNoValue) read[v.index] = true;
    }
  }
  for (const Output& output : step.outputs()) read[output.value.index] = true;
  std::vector<ValueId> frontier;
  for (uint32_t v = 0; v < step.num_values(); ++v) {
    const bool computed = step.values()[v].producer != kNoNode && kinds[v] == Kind::kConstant;
    if (computed && read[v]) frontier.push_back(ValueId{v});
  }
  return frontier;
}

}  // namespace

std::optional<SplitStep> split_constant_prefix(const Graph& step) {
  const std::vector<ValueId> frontier = frontier_of(step, kinds_of(step));
  const Dim batch = step.type(step.inputs()[0]).shape[0];
  const bool by_image = std::all_of(frontier.begin(), frontier.end(), [&](ValueId v) {
    return step.type(v).rank() > 0 && step.type(v).shape[0] == batch;
  });
  if (frontier.empty() || !by_image) return std::nullopt;
  SplitStep split{step, step};
  split.prefix.mutable_outputs().clear();
  for (size_t i = 0; i < frontier.size(); ++i) {
    const std::string name = "feature/" + std::to_string(i);
    split.prefix.add_output(frontier[i], name);
    split.rest.replace_uses(frontier[i], split.rest.add_input(name, step.type(frontier[i])));
  }
  split.prefix.compact();
  split.rest.compact();
  return split;
}

}  // namespace limber
