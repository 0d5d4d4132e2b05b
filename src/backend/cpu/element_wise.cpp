// Nodes that do the same to every element, over memory in any order.
#include "backend/cpu/formats.h"
#include "backend/cpu/simd/own_kernels.h"

namespace limber {
namespace {

bool is_element_wise(const Node& node) {
  switch (node.op) {
    case OpKind::kSgdUpdate:
    case OpKind::kAdd:
    case OpKind::kMul:
    case OpKind::kReduceSumSquare:
      return true;
    case OpKind::kAdamUpdate:
      return node.attrs.f("epsilon") > 0;  // padding has no gradient, ever: 0 / (0 + epsilon)
    default:
      return false;
  }
}

}  // namespace

std::optional<FormatWay> element_wise_way(const Graph& g, const Node& node, Layout layout, int64_t elements) {
  if (!is_element_wise(node) || node.inputs.empty() || node.inputs[0] == kNoValue) return std::nullopt;
  const TensorType& type = g.type(node.inputs[0]);
  if (type.dtype != DType::kF32 || type.rank() == 0) return std::nullopt;
  const auto flat = [&](ValueId v) {
    const TensorType& own = g.type(v);
    return own == type ? TensorType{DType::kF32, Shape{Dim(elements)}} : own;
  };
  FormatWay way;
  auto graph = std::make_shared<Graph>();
  std::vector<ValueId> inputs;
  const bool padded = elements != type.shape.elements();
  for (ValueId v : node.inputs) {
    // A number that is added to all elements would be added to the padding too.
    if (padded && node.op == OpKind::kAdd && g.type(v) != type) return std::nullopt;
    const bool scalar = v != kNoValue && g.type(v).shape.elements() == 1;
    if (v != kNoValue && g.type(v) != type && !scalar) return std::nullopt;
    inputs.push_back(v == kNoValue ? kNoValue : graph->add_input("x", flat(v)));
    way.inputs.push_back(v != kNoValue && g.type(v) == type ? layout : kPlain);
  }
  std::vector<TensorType> outputs;
  for (ValueId v : node.outputs) {
    outputs.push_back(v == kNoValue ? TensorType{} : flat(v));
    way.outputs.push_back(v != kNoValue && g.type(v) == type ? layout : kPlain);
  }
  Attrs attrs = node.attrs;
  if (node.op == OpKind::kReduceSumSquare) {
    const bool all = attrs.ints("axes").size() == static_cast<size_t>(type.rank());
    if (!all || attrs.i("keepdims", 1) != 0) return std::nullopt;
    attrs.set("axes", std::vector<int64_t>{0});
  } else if (node.outputs[0] == kNoValue || g.type(node.outputs[0]) != type) {
    return std::nullopt;
  }
  const NodeId id = graph->add_node(node.op, std::move(inputs), std::move(attrs), std::move(outputs));
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    if (node.outputs[k] == kNoValue) graph->mutable_node(id).outputs[k] = kNoValue;
  }
  if (!own_supports(*graph, graph->node(id))) return std::nullopt;
  way.impl = "simd";
  way.may_alias = own_may_alias(*graph, graph->node(id));
  way.make = [graph, id] { return own_kernel(*graph, graph->node(id)); };
  return way;
}

}  // namespace limber
