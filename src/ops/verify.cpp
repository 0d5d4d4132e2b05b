#include "ops/op_def.h"

namespace limber {
namespace {

Status check_node(const Graph& graph, const Node& node) {
  LIMBER_ASSIGN(const auto types,
                infer_types(graph, node.op, node.inputs, node.attrs, static_cast<int>(node.outputs.size())));
  for (size_t i = 0; i < types.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    const Value& output = graph.value(node.outputs[i]);
    if (output.type == types[i]) continue;
    return invalid("{}: output {} '{}' has type {}, its rule gives {}", op_name(node.op), i, output.name,
                   output.type.to_string(), types[i].to_string());
  }
  return {};
}

}  // namespace

Status verify(const Graph& graph) {
  LIMBER_TRY(verify_structure(graph));
  for (const Value& value : graph.values()) {
    if (Status status = check_type(value.type); !status.ok())
      return status.in(fmt::format("value '{}'", value.name));
  }
  for (const Output& output : graph.outputs()) {
    if (output.rows == kNoValue || graph.type(output.rows) == TensorType{DType::kI64, {}}) continue;
    return invalid("output '{}': its row count has type {}, expected i64[]", output.name,
                   graph.type(output.rows).to_string());
  }
  for (size_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.nodes()[n];
    if (Status status = check_node(graph, node); !status.ok()) {
      return status.in(fmt::format("node {} '{}'", n, node.name));
    }
  }
  return {};
}

}  // namespace limber
