#include "train/head.h"

#include <algorithm>
#include <vector>

#include "ops/op_def.h"
#include "train/init.h"

namespace limber {
namespace {

bool is_parameter(const Graph& graph, ValueId v) {
  return v != kNoValue && graph.value(v).role == Role::kParameter && graph.type(v).dtype == DType::kF32;
}

// What may stand between the last layer and the output: each class stays on its own.
bool passes_classes(OpKind op) {
  switch (op) {
    case OpKind::kIdentity:
    case OpKind::kRelu:
    case OpKind::kSigmoid:
    case OpKind::kSoftmax:
    case OpKind::kLogSoftmax:
    case OpKind::kReshape:
    case OpKind::kGlobalAveragePool:
    case OpKind::kReduceMean:
      return true;
    default:
      return false;
  }
}

Status not_found(const Graph& graph, NodeId at) {
  const std::string found = at == kNoNode
                                ? "an input or a parameter"
                                : fmt::format("{} '{}'", op_name(graph.node(at).op), graph.node(at).name);
  return unsupported(
      "expected a Gemm, MatMul or Conv with weights of its own before the output of a classifier, found {}",
      found);
}

class HeadFinder {
 public:
  explicit HeadFinder(const Graph& graph) : graph_(graph) {}

  Result<Head> run(ValueId v) {
    for (;;) {
      const NodeId at = graph_.value(v).producer;
      if (at == kNoNode) return not_found(graph_, at);
      const Node& node = graph_.node(at);
      if (is_layer(node)) return layer(node);
      if (node.op == OpKind::kAdd && bias_ == kNoValue && take_bias(node)) {
        v = node.inputs[node.inputs[0] == bias_ ? 1 : 0];
      } else if (passes_classes(node.op)) {
        v = node.inputs[0];
      } else {
        return not_found(graph_, at);
      }
    }
  }

 private:
  bool is_layer(const Node& node) const {
    if (node.op == OpKind::kConv)
      return is_parameter(graph_, node.inputs[1]) && node.attrs.i("groups", 1) == 1;
    return (node.op == OpKind::kGemm || node.op == OpKind::kMatMul) && is_parameter(graph_, node.inputs[1]) &&
           graph_.type(node.inputs[1]).rank() == 2;
  }

  bool take_bias(const Node& node) {
    for (const ValueId v : {node.inputs[0], node.inputs[1]}) {
      if (is_parameter(graph_, v)) bias_ = v;
    }
    return bias_ != kNoValue;
  }

  Result<Head> layer(const Node& node) const {
    const bool conv = node.op == OpKind::kConv;
    Head head;
    head.features = node.inputs[0];
    head.weight = node.inputs[1];
    head.weight_axis = conv || node.attrs.i("trans_b", 0) != 0 ? 0 : 1;
    const Shape& shape = graph_.type(head.weight).shape;
    const int64_t classes = shape.dim(head.weight_axis);
    head.fan_in = shape.elements() / std::max<int64_t>(1, classes);
    ValueId bias = bias_;
    if (node.inputs.size() > 2 && node.inputs[2] != kNoValue) bias = node.inputs[2];
    if (bias == kNoValue) return head;
    if (!is_parameter(graph_, bias)) return not_found(graph_, graph_.value(bias).producer);
    const Shape& b = graph_.type(bias).shape;
    for (int axis = 0; axis < b.rank(); ++axis) {
      if (b.dim(axis) != classes) continue;
      head.bias = bias;
      head.bias_axis = axis;
    }
    return head;
  }

  const Graph& graph_;
  ValueId bias_ = kNoValue;
};

// Types of everything behind the head, and shapes that spell out the number of classes.
Status infer_again(Graph& graph, int64_t before, int64_t classes) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node node = graph.node(NodeId{n});
    auto types = infer_types(graph, node.op, node.inputs, node.attrs, static_cast<int>(node.outputs.size()));
    if (!types.ok() && node.op == OpKind::kReshape) {
      Shape shape = node.attrs.dims("shape");
      for (int axis = 1; axis < shape.rank(); ++axis) {
        if (shape[axis] == Dim(before)) shape[axis] = Dim(classes);
      }
      graph.mutable_node(NodeId{n}).attrs.set("shape", shape);
      types = infer_types(graph, node.op, node.inputs, graph.node(NodeId{n}).attrs, 1);
    }
    if (!types.ok()) return types.status().in(fmt::format("node '{}' behind the classifier", node.name));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNoValue) graph.mutable_value(node.outputs[i]).type = (*types)[i];
    }
  }
  return {};
}

Result<Tensor> resize_part(Graph& graph, ValueId part, int axis, int64_t classes, int64_t fan_in,
                           uint64_t seed) {
  Value& value = graph.mutable_value(part);
  value.type.shape[axis] = Dim(classes);
  return uniform_init(value.type, fan_in, value.name, seed);
}

}  // namespace

Result<Head> find_head(const Graph& graph, ValueId output) { return HeadFinder(graph).run(output); }

Status replace_head(Graph& graph, Parameters& params, int64_t classes, uint64_t seed) {
  if (classes < 2) return invalid("a classifier needs 2 classes or more; the data has {}", classes);
  if (graph.outputs().empty()) return invalid("the model has no output");
  const auto found = find_head(graph, graph.outputs()[0].value);
  if (!found.ok()) {
    return error(
        found.status().code(),
        "the classifier cannot be replaced: {}; give the model as many classes as the data, or keep it "
        "(head: keep)",
        found.status().message());
  }
  const Head& head = *found;
  const auto readers = graph.readers();
  if (readers[head.weight.index].size() != 1) {
    return unsupported("the classifier cannot be replaced: its weights '{}' are used {} times",
                       graph.value(head.weight).name, readers[head.weight.index].size());
  }
  const int64_t before = graph.type(head.weight).shape.dim(head.weight_axis);
  Graph changed = graph;
  LIMBER_ASSIGN(Tensor weight,
                resize_part(changed, head.weight, head.weight_axis, classes, head.fan_in, seed));
  Tensor bias;
  if (head.bias != kNoValue) {
    LIMBER_ASSIGN(bias, resize_part(changed, head.bias, head.bias_axis, classes, head.fan_in, seed));
  }
  LIMBER_TRY(infer_again(changed, before, classes));
  LIMBER_TRY(verify(changed));
  graph = std::move(changed);
  params.set(graph.value(head.weight).name, std::move(weight));
  if (bias.valid()) params.set(graph.value(head.bias).name, std::move(bias));
  return {};
}

}  // namespace limber
