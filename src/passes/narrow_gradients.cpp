// What is made of a gradient's rows alone is computed for these rows alone.
#include <algorithm>
#include <vector>

#include "ops/op_def.h"
#include "passes/passes.h"

namespace limber {
namespace {

// A Gather of constant indices along one axis.
struct Rows {
  ValueId of, indices;
  int64_t axis;
};

// Input channels that output channels `indices` of a convolution read, when each reads just one.
Tensor channels_read(const Tensor& indices, int64_t outputs_per_input) {
  Tensor read = *Tensor::allocate(indices.type());
  std::transform(indices.data<int64_t>().begin(), indices.data<int64_t>().end(), read.data<int64_t>().begin(),
                 [&](int64_t output) { return output / outputs_per_input; });
  return read;
}

class Narrower {
 public:
  explicit Narrower(Graph& graph)
      : graph_(graph), readers_(graph.readers()), old_nodes_(static_cast<uint32_t>(graph.num_nodes())) {}

  Status run() {
    for (uint32_t n = 0; n < old_nodes_; ++n) {
      LIMBER_ASSIGN(const ValueId narrow, narrowed(NodeId{n}));
      if (narrow != kNoValue) graph_.replace_uses(graph_.node(NodeId{n}).outputs[0], narrow);
    }
    if (graph_.num_nodes() == old_nodes_) return {};
    place_early();
    graph_.compact();
    return {};
  }

 private:
  // What may stand for the result of the node; kNoValue: nothing.
  Result<ValueId> narrowed(NodeId n) {
    if (graph_.node(n).op != OpKind::kGather) return kNoValue;
    const Rows rows{graph_.node(n).inputs[0], graph_.node(n).inputs[1], graph_.node(n).attrs.i("axis")};
    const Value& indices = graph_.value(rows.indices);
    const NodeId maker = graph_.value(rows.of).producer;
    if (indices.role != Role::kConstant || indices.type.dtype != DType::kI64 || indices.type.rank() != 1 ||
        maker == kNoNode || readers_[rows.of.index].size() != 1 || graph_.is_output(rows.of))
      return kNoValue;
    const Node made = graph_.node(maker);
    if (made.op == OpKind::kConvBackwardWeights && rows.axis == 0 && made.outputs[0] == rows.of)
      return conv(made, rows);
    return made.op == OpKind::kMatMul ? product(made, rows) : kNoValue;
  }

  Result<ValueId> gather(ValueId from, ValueId indices, int64_t axis, std::string_view name) {
    return emit(graph_, OpKind::kGather, {from, indices}, {{"axis", axis}}, name);
  }

  Result<ValueId> conv(const Node& node, const Rows& rows) {
    Attrs attrs = node.attrs;
    ValueId x = node.inputs[0];
    const int64_t groups = attrs.i("groups", 1), outputs = graph_.type(node.inputs[1]).shape.dim(1);
    if (groups > 1) {
      if (graph_.type(x).shape.dim(1) != groups) return kNoValue;  // several inputs for each output
      const Tensor read = channels_read(graph_.value(rows.indices).constant, outputs / groups);
      LIMBER_ASSIGN(x, gather(x, graph_.add_constant("narrow/inputs", read), 1, node.name));
      attrs.set("groups", read.elements());
    }
    LIMBER_TRY(split_bias(node));
    LIMBER_ASSIGN(const ValueId dy, gather(node.inputs[1], rows.indices, 1, node.name));
    return emit(graph_, OpKind::kConvBackwardWeights, {x, dy}, std::move(attrs), node.name);
  }

  // The bias' gradient of a convolution gets a node of its own.
  Status split_bias(const Node& conv) {
    if (conv.outputs.size() < 2 || conv.outputs[1] == kNoValue) return {};
    std::vector<int64_t> axes = {0};
    for (int axis = 2; axis < graph_.type(conv.inputs[1]).rank(); ++axis) axes.push_back(axis);
    LIMBER_ASSIGN(const ValueId sum, emit(graph_, OpKind::kReduceSum, {conv.inputs[1]},
                                          {{"axes", axes}, {"keepdims", int64_t{0}}}, conv.name));
    graph_.replace_uses(conv.outputs[1], sum);
    return {};
  }

  Result<ValueId> product(Node node, const Rows& rows) {
    for (size_t i = 2; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != kNoValue) return kNoValue;
    }
    if (graph_.type(node.inputs[0]).rank() != 2 || graph_.type(node.inputs[1]).rank() != 2) return kNoValue;
    if (!node.attrs.s("act", "").empty()) return kNoValue;
    const bool of_a = rows.axis == 0;
    const int64_t flipped = node.attrs.i(of_a ? "trans_a" : "trans_b", 0);
    ValueId& operand = node.inputs[of_a ? 0 : 1];
    LIMBER_ASSIGN(operand, gather(operand, rows.indices, of_a ? flipped : 1 - flipped, node.name));
    return emit(graph_, OpKind::kMatMul, node.inputs, node.attrs, node.name);
  }

  // Every new node stands right behind the last that it needs: what it reads need not be kept until the
  // choice is made of the result.
  void place_early() {
    const auto count = static_cast<uint32_t>(graph_.num_nodes());
    std::vector<uint32_t> behind(count);                                   // old node + 1; 0: before all
    std::vector<std::vector<uint32_t>> followers(size_t{old_nodes_} + 1);  // the same
    for (uint32_t n = 0; n < count; ++n) {
      behind[n] = n < old_nodes_ ? n + 1 : 0;
      if (n < old_nodes_) continue;
      for (const ValueId v : graph_.node(NodeId{n}).inputs) {
        const NodeId maker = v == kNoValue ? kNoNode : graph_.value(v).producer;
        if (maker != kNoNode) behind[n] = std::max(behind[n], behind[maker.index]);
      }
      followers[behind[n]].push_back(n);
    }
    std::vector<uint32_t> order = followers[0];
    for (uint32_t n = 0; n < old_nodes_; ++n) {
      order.push_back(n);
      order.insert(order.end(), followers[n + 1].begin(), followers[n + 1].end());
    }
    graph_.reorder(order);
  }

  Graph& graph_;
  const std::vector<std::vector<NodeId>> readers_;
  const uint32_t old_nodes_;
};

}  // namespace

Status narrow_gradients(Graph& graph) { return Narrower(graph).run(); }

}  // namespace limber
