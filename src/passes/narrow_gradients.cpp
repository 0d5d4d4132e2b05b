// What is made of a gradient's rows alone is computed for these rows alone.
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace limber {
namespace {

// A Gather of constant indices along one axis.
struct Rows {
  ValueId of, indices;
  int64_t axis;
};

bool is_constant(const Graph& graph, ValueId v) { return graph.value(v).role == Role::kConstant; }

Result<ValueId> gather(Rewriter& r, ValueId from, ValueId indices, int64_t axis, std::string_view name) {
  return r.emit(OpKind::kGather, {from, indices}, {{"axis", axis}}, name);
}

// Input channels that output channels `indices` of a convolution read, when each reads just one.
Tensor channels_read(const Tensor& indices, int64_t outputs_per_input) {
  Tensor read = *Tensor::allocate(indices.type());
  for (int64_t i = 0; i < indices.elements(); ++i)
    read.data<int64_t>()[static_cast<size_t>(i)] =
        indices.data<int64_t>()[static_cast<size_t>(i)] / outputs_per_input;
  return read;
}

// The bias' gradient of a convolution gets a node of its own.
Status split_bias(Rewriter& r, NodeId conv) {
  if (r.node(conv).outputs.size() < 2 || r.node(conv).outputs[1] == kNoValue) return {};
  const ValueId dbias = r.node(conv).outputs[1], dy = r.input(conv, 1);
  std::vector<int64_t> axes = {0};
  for (int axis = 2; axis < r.graph().type(dy).rank(); ++axis) axes.push_back(axis);
  LIMBER_ASSIGN(const ValueId sum, r.emit(OpKind::kReduceSum, {dy},
                                          {{"axes", axes}, {"keepdims", int64_t{0}}}, r.node(conv).name));
  r.replace(dbias, sum);
  return {};
}

Result<ValueId> narrow_conv(Rewriter& r, NodeId conv, const Rows& rows) {
  const Node node = r.node(conv);
  const Graph& graph = r.graph();
  Attrs attrs = node.attrs;
  ValueId x = node.inputs[0];
  const int64_t groups = attrs.i("groups", 1), outputs = graph.type(node.inputs[1]).shape.dim(1);
  if (groups > 1) {
    if (graph.type(x).shape.dim(1) != groups) return kNoValue;  // several inputs for each output
    const Tensor read = channels_read(graph.value(rows.indices).constant, outputs / groups);
    const ValueId inputs = r.graph().add_constant("narrow/inputs", read);
    LIMBER_ASSIGN(x, gather(r, x, inputs, 1, node.name));
    attrs.set("groups", read.elements());
  }
  LIMBER_TRY(split_bias(r, conv));
  LIMBER_ASSIGN(const ValueId dy, gather(r, node.inputs[1], rows.indices, 1, node.name));
  return r.emit(OpKind::kConvBackwardWeights, {x, dy}, std::move(attrs), node.name);
}

Result<ValueId> narrow_product(Rewriter& r, NodeId product, const Rows& rows) {
  Node node = r.node(product);
  for (size_t i = 2; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNoValue) return kNoValue;
  }
  const ValueId a = node.inputs[0], b = node.inputs[1];
  if (r.graph().type(a).rank() != 2 || r.graph().type(b).rank() != 2) return kNoValue;
  const bool of_a = rows.axis == 0;
  const int64_t flipped = node.attrs.i(of_a ? "trans_a" : "trans_b", 0);
  LIMBER_ASSIGN(node.inputs[of_a ? 0 : 1],
                gather(r, of_a ? a : b, rows.indices, of_a ? flipped : 1 - flipped, node.name));
  return r.emit(OpKind::kMatMul, node.inputs, node.attrs, node.name);
}

Status narrow(Rewriter& r, NodeId n) {
  if (r.node(n).op != OpKind::kGather) return {};
  const Rows rows{r.input(n, 0), r.input(n, 1), r.node(n).attrs.i("axis")};
  const TensorType indices = r.graph().type(rows.indices);
  if (!is_constant(r.graph(), rows.indices) || indices.dtype != DType::kI64 || indices.rank() != 1 ||
      !r.used_once(rows.of))
    return {};
  ValueId narrow = kNoValue;
  const NodeId conv = r.producer(rows.of, OpKind::kConvBackwardWeights);
  const NodeId product = r.producer(rows.of, OpKind::kMatMul);
  if (conv != kNoNode && rows.axis == 0) {
    LIMBER_ASSIGN(narrow, narrow_conv(r, conv, rows));
  } else if (product != kNoNode) {
    LIMBER_ASSIGN(narrow, narrow_product(r, product, rows));
  }
  if (narrow != kNoValue) r.replace(r.output(n), narrow);
  return {};
}

}  // namespace

Status narrow_gradients(Graph& graph) { return sweep(graph, narrow).status(); }

}  // namespace limber
