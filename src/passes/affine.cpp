#include "passes/affine.h"

#include "passes/match.h"

namespace limber {

std::optional<AffineNode> as_affine(const Rewriter& r, NodeId n) {
  const Graph& g = r.graph();
  const Node& node = r.node(n);
  if (node.op == OpKind::kBatchNorm) {
    for (size_t i = 1; i < 5; ++i) {
      if (!r.is_static(node.inputs[i])) return std::nullopt;
    }
    return r.is_static(node.inputs[0]) ? std::nullopt : std::optional(AffineNode{n, node.inputs[0]});
  }
  const bool commutes = node.op == OpKind::kMul || node.op == OpKind::kAdd;
  if (!commutes && node.op != OpKind::kDiv && node.op != OpKind::kSub) return std::nullopt;
  const bool swapped = commutes && r.is_static(node.inputs[0]);
  const ValueId x = node.inputs[swapped ? 1 : 0], operand = node.inputs[swapped ? 0 : 1];
  if (r.is_static(x) || !r.is_static(operand) || !is_float(g.type(x).dtype)) return std::nullopt;
  if (g.type(x) != g.type(node.outputs[0])) return std::nullopt;
  return AffineNode{n, x, operand};
}

bool is_per_channel(const Rewriter& r, const AffineNode& affine, int axis, const Dim& channels) {
  const int rank = r.graph().type(affine.x).rank();
  if (affine.operand == kNoValue) return axis == 1;
  const Shape& shape = r.graph().type(affine.operand).shape;
  const int missing = rank - shape.rank();
  for (int i = 0; i < shape.rank(); ++i) {
    const bool fits = shape[i] == Dim(1) || (i + missing == axis && shape[i] == channels);
    if (!fits) return false;
  }
  return channels.is_constant();
}

Result<ValueId> emit_product(Rewriter& r, ValueId a, ValueId b, std::string_view name) {
  if (a == kNoValue || b == kNoValue) return a == kNoValue ? b : a;
  return r.emit(OpKind::kMul, {a, b}, {}, name);
}

Result<ValueId> emit_sum(Rewriter& r, ValueId a, ValueId b, std::string_view name) {
  if (a == kNoValue || b == kNoValue) return a == kNoValue ? b : a;
  return r.emit(OpKind::kAdd, {a, b}, {}, name);
}

Result<ValueId> emit_reshaped(Rewriter& r, ValueId v, Shape shape, std::string_view name) {
  if (r.graph().type(v).shape == shape) return v;
  return r.emit(OpKind::kReshape, {v}, {{"shape", std::move(shape)}}, name);
}

Result<ValueId> emit_expanded(Rewriter& r, ValueId v, const Shape& shape, std::string_view name) {
  if (v == kNoValue || r.graph().type(v).shape == shape) return v;
  return r.emit(OpKind::kExpand, {v}, {{"shape", shape}}, name);
}

namespace {

// scale / sqrt(var + epsilon), and bias - mean * that.
Result<Affine> emit_batch_norm(Rewriter& r, NodeId n, const std::string& name) {
  const std::vector<ValueId> in = r.node(n).inputs;
  const double epsilon = r.node(n).attrs.f("epsilon");
  LIMBER_ASSIGN(const ValueId eps, add_scalar(r, r.graph().type(in[4]).dtype, epsilon, name + "/epsilon"));
  LIMBER_ASSIGN(const ValueId var, r.emit(OpKind::kAdd, {in[4], eps}, {}, name + "/var"));
  LIMBER_ASSIGN(const ValueId std, r.emit(OpKind::kSqrt, {var}, {}, name + "/std"));
  LIMBER_ASSIGN(const ValueId scale, r.emit(OpKind::kDiv, {in[1], std}, {}, name + "/scale"));
  LIMBER_ASSIGN(const ValueId moved, r.emit(OpKind::kMul, {in[3], scale}, {}, name + "/moved"));
  LIMBER_ASSIGN(const ValueId shift, r.emit(OpKind::kSub, {in[2], moved}, {}, name + "/shift"));
  return Affine{scale, shift};
}

}  // namespace

Result<Affine> emit_affine(Rewriter& r, const AffineNode& affine) {
  const OpKind op = r.node(affine.node).op;
  const std::string name = r.graph().value(r.output(affine.node)).name;
  if (op == OpKind::kBatchNorm) return emit_batch_norm(r, affine.node, name);
  const int64_t elements = r.graph().type(affine.operand).shape.elements();
  LIMBER_ASSIGN(ValueId v, emit_reshaped(r, affine.operand, {elements}, name + "/vector"));
  if (op == OpKind::kDiv) {
    LIMBER_ASSIGN(v, r.emit(OpKind::kReciprocal, {v}, {}, name + "/scale"));
  } else if (op == OpKind::kSub) {
    LIMBER_ASSIGN(v, r.emit(OpKind::kNeg, {v}, {}, name + "/shift"));
  }
  return op == OpKind::kMul || op == OpKind::kDiv ? Affine{v, kNoValue} : Affine{kNoValue, v};
}

}  // namespace limber
