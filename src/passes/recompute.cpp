#include "passes/recompute.h"

#include <algorithm>
#include <map>

#include "ops/op_def.h"

namespace limber {
namespace {

// One pass over memory, or little more.
bool is_cheap(OpKind op) {
  if (is_unary(op) || is_binary(op)) return true;
  switch (op) {
    case OpKind::kBatchNorm:
    case OpKind::kBatchNormTraining:
    case OpKind::kLayerNorm:
    case OpKind::kSoftmax:
    case OpKind::kTranspose:
    case OpKind::kConcat:
    case OpKind::kSlice:
    case OpKind::kPad:
    case OpKind::kMaxPool:
    case OpKind::kAveragePool:
      return true;
    default:
      return false;
  }
}

// The node again, as far as its first output goes. Running statistics are not needed for that, and reading
// them a second time would keep them from being updated in place: the batch's own stand in for them.
Result<ValueId> emit_again(Graph& graph, const Node& node, const std::map<ValueId, ValueId>& copies) {
  std::vector<ValueId> inputs = node.inputs;
  for (ValueId& v : inputs) {
    if (const auto copy = copies.find(v); copy != copies.end()) v = copy->second;
  }
  if (node.op == OpKind::kBatchNormTraining && node.outputs.size() == 5 && node.outputs[3] != kNoValue &&
      node.outputs[4] != kNoValue) {
    inputs[3] = node.outputs[3];
    inputs[4] = node.outputs[4];
  }
  const int outputs = op_def(node.op).min_outputs;
  LIMBER_ASSIGN(const NodeId made,
                emit_node(graph, node.op, std::move(inputs), node.attrs, outputs, node.name + "/again"));
  const ValueId first = graph.node(made).outputs[0];
  for (size_t k = 1; k < graph.node(made).outputs.size(); ++k) graph.mutable_node(made).outputs[k] = kNoValue;
  return first;
}

}  // namespace

std::vector<ValueId> recomputable(const Graph& graph, NodeId backward) {
  const auto readers = graph.readers();
  std::vector<ValueId> values;
  for (uint32_t n = 0; n < backward.index; ++n) {
    const Node& node = graph.node(NodeId{n});
    if (!is_cheap(node.op) || node.outputs[0] == kNoValue || graph.is_output(node.outputs[0])) continue;
    const auto& read = readers[node.outputs[0].index];
    const bool later = std::any_of(read.begin(), read.end(), [&](NodeId r) { return r >= backward; });
    if (later) values.push_back(node.outputs[0]);
  }
  std::stable_sort(values.begin(), values.end(),
                   [&](ValueId a, ValueId b) { return graph.type(a).bytes() > graph.type(b).bytes(); });
  return values;
}

Status recompute(Graph& graph, std::span<const ValueId> values, NodeId backward) {
  std::vector<ValueId> ordered(values.begin(), values.end());
  std::sort(ordered.begin(), ordered.end(),
            [&](ValueId a, ValueId b) { return graph.value(a).producer < graph.value(b).producer; });
  const auto last = static_cast<uint32_t>(graph.num_nodes());
  std::map<ValueId, ValueId> copies;
  for (ValueId v : ordered) {
    const Node node = graph.node(graph.value(v).producer);
    LIMBER_ASSERT(node.outputs[0] == v && graph.value(v).producer < backward);
    LIMBER_ASSIGN(copies[v], emit_again(graph, node, copies));
  }
  for (uint32_t n = backward.index; n < last; ++n) {
    for (ValueId& v : graph.mutable_node(NodeId{n}).inputs) {
      if (const auto copy = copies.find(v); copy != copies.end()) v = copy->second;
    }
  }
  graph.compact();  // pulls each copy to its first reader
  return {};
}

}  // namespace limber
