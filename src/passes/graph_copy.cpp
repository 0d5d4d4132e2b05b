#include "passes/graph_copy.h"

#include <algorithm>

namespace limber {

bool is_known_shape(const Graph& graph, const Node& node) {
  return node.op == OpKind::kShapeOf && graph.type(node.inputs[0]).shape.is_constant();
}

bool GraphCopy::ready(const Node& node) const {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [this](ValueId v) {
    return v == kNoValue || has(v) || source_.value(v).role == Role::kConstant;
  });
}

ValueId GraphCopy::value(ValueId v) {
  if (v == kNoValue) return v;
  const Value& value = source_.value(v);
  if (!has(v) && value.role == Role::kConstant)
    copies_[v.index] = target_.add_constant(value.name, value.constant);
  LIMBER_ASSERT(has(v));
  return copies_[v.index];
}

Status GraphCopy::share_parameter(ValueId v) {
  const Value& value = source_.value(v);
  if (const auto found = target_.find(value.name)) {
    const Value& there = target_.value(*found);
    if (there.role != value.role)
      return invalid("parameter '{}': the name is taken by something else", value.name);
    if (there.type != value.type) {
      return invalid("parameter '{}' has type {} in one graph and {} in the other; rename one of them",
                     value.name, there.type.to_string(), value.type.to_string());
    }
    copies_[v.index] = *found;
  } else {
    copies_[v.index] = target_.add_parameter(value.name, value.type, value.role);
  }
  return {};
}

Status GraphCopy::share_parameters() {
  for (uint32_t v = 0; v < source_.num_values(); ++v) {
    const Role role = source_.value(ValueId{v}).role;
    if (role == Role::kParameter || role == Role::kState) LIMBER_TRY(share_parameter(ValueId{v}));
  }
  return {};
}

void GraphCopy::node(const Node& node) {
  std::vector<ValueId> inputs;
  for (ValueId v : node.inputs) inputs.push_back(value(v));
  std::vector<TensorType> types;
  for (ValueId v : node.outputs) {
    if (v != kNoValue) types.push_back(source_.type(v));
  }
  const NodeId copy = target_.add_node(node.op, std::move(inputs), node.attrs, std::move(types), node.name);
  std::vector<ValueId> outputs = node.outputs;
  size_t made = 0;
  for (ValueId& v : outputs) {
    if (v == kNoValue) continue;
    const ValueId output = target_.node(copy).outputs[made++];
    target_.rename(output, source_.value(v).name);
    copies_[v.index] = output;
    v = output;
  }
  target_.mutable_node(copy).outputs = std::move(outputs);
}

}  // namespace limber
