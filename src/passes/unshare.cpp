#include "passes/unshare.h"

namespace limber {

std::vector<ParameterCopy> unshare_parameters(Graph& graph) {
  std::vector<ParameterCopy> copies;
  const std::vector<bool> updated = graph.updated();
  std::vector<bool> read(graph.num_values(), false);
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    for (size_t i = 0; i < graph.node(NodeId{n}).inputs.size(); ++i) {
      const ValueId v = graph.node(NodeId{n}).inputs[i];
      if (v == kNoValue || v.index >= read.size()) continue;
      const Value& value = graph.value(v);
      if (value.role != Role::kParameter || value.type.rank() != 1 || updated[v.index]) continue;
      if (!read[v.index]) {
        read[v.index] = true;
        continue;
      }
      const std::string of = value.name;
      const ValueId copy = graph.add_parameter(fmt::format("{}.copy", of), TensorType(value.type));
      graph.mutable_node(NodeId{n}).inputs[i] = copy;
      copies.push_back({graph.value(copy).name, of});
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
