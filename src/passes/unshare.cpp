#include "passes/unshare.h"

namespace limber {
namespace {

bool may_be_accident(const Value& value) {
  if (value.role == Role::kConstant) return value.constant.elements() > 1;
  return value.role == Role::kParameter && value.type.rank() == 1;
}

}  // namespace

std::vector<ParameterCopy> unshare_parameters(Graph& graph) {
  std::vector<ParameterCopy> copies;
  const std::vector<bool> updated = graph.updated();
  std::vector<bool> read(graph.num_values(), false);
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    for (size_t i = 0; i < graph.node(NodeId{n}).inputs.size(); ++i) {
      const ValueId v = graph.node(NodeId{n}).inputs[i];
      if (v == kNoValue || updated[v.index] || !may_be_accident(graph.value(v))) continue;
      if (!read[v.index]) {
        read[v.index] = true;
        continue;
      }
      const Value value = graph.value(v);
      const std::string name = fmt::format("{}.copy", value.name);
      const bool constant = value.role == Role::kConstant;
      const ValueId copy =
          constant ? graph.add_constant(name, value.constant) : graph.add_parameter(name, value.type);
      graph.mutable_node(NodeId{n}).inputs[i] = copy;
      if (!constant) copies.push_back({graph.value(copy).name, value.name});
    }
  }
  return copies;
}

Status copy_parameters(std::span<const ParameterCopy> copies, Parameters& params) {
  for (const ParameterCopy& copy : copies) {
    LIMBER_ASSIGN(Tensor tensor, params.get(copy.of));
    LIMBER_ASSIGN(tensor, tensor.copy());
    params.set(copy.name, std::move(tensor));
  }
  return {};
}

}  // namespace limber
