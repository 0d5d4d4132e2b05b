#include "passes/match.h"
#include "passes/passes.h"

namespace limber {
namespace {

// Mean of `x` over its last axes with keepdims: the first of them, else -1.
int mean_axis(const Rewriter& r, ValueId v, ValueId x) {
  const NodeId mean = r.producer(v, OpKind::kReduceMean);
  if (mean == kNoNode || r.input(mean, 0) != x || r.node(mean).attrs.i("keepdims", 1) != 1) return -1;
  const auto& axes = r.node(mean).attrs.ints("axes");
  const int rank = r.graph().type(x).rank();
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != rank - static_cast<int>(axes.size()) + static_cast<int>(i)) return -1;
  }
  return axes.empty() ? -1 : static_cast<int>(axes[0]);
}

// d * d, or d to the power of 2.
bool is_square(const Rewriter& r, ValueId v, ValueId d) {
  if (const NodeId mul = r.producer(v, OpKind::kMul); mul != kNoNode) return r.input(mul, 0) == d && r.input(mul, 1) == d;
  const NodeId pow = r.producer(v, OpKind::kPow);
  return pow != kNoNode && r.input(pow, 0) == d && is_constant_close_to(r.graph(), r.input(pow, 1), 2);
}

// d / sqrt(variance + epsilon), as a division or as a product with the reciprocal.
struct Quotient {
  ValueId d, variance;
  double epsilon;
};

std::optional<Quotient> quotient_of(const Rewriter& r, ValueId d, ValueId root, bool reciprocal) {
  if (reciprocal) {
    const NodeId inverse = r.producer(root, OpKind::kReciprocal);
    if (inverse == kNoNode || !r.used_once(root)) return std::nullopt;
    root = r.input(inverse, 0);
  }
  const NodeId sqrt = r.producer(root, OpKind::kSqrt);
  if (sqrt == kNoNode || !r.used_once(root)) return std::nullopt;
  const ValueId sum = r.input(sqrt, 0);
  const auto shifted = as_shifted(r, sum);
  if (!shifted || !r.used_once(sum)) return std::nullopt;
  return Quotient{d, shifted->x, shifted->term};
}

std::optional<Quotient> as_quotient(const Rewriter& r, NodeId n) {
  const ValueId a = r.input(n, 0), b = r.input(n, 1);
  if (r.node(n).op == OpKind::kDiv) return quotient_of(r, a, b, false);
  if (r.node(n).op != OpKind::kMul) return std::nullopt;
  const auto q = quotient_of(r, a, b, true);
  return q ? q : quotient_of(r, b, a, true);
}

Status layer_norm_rule(Rewriter& r, NodeId n) {
  const auto q = as_quotient(r, n);
  if (!q) return {};
  const NodeId sub = r.producer(q->d, OpKind::kSub);
  const NodeId variance = r.producer(q->variance, OpKind::kReduceMean);
  if (sub == kNoNode || variance == kNoNode || !r.used_once(q->variance)) return {};
  const ValueId x = r.input(sub, 0), square = r.input(variance, 0);
  const int axis = mean_axis(r, r.input(sub, 1), x);
  if (axis < 0 || mean_axis(r, q->variance, square) != axis) return {};
  if (!is_square(r, square, q->d) || !r.used_once(square)) return {};
  if (r.graph().type(x) != r.graph().type(r.output(n))) return {};
  const std::string name = r.node(n).name;
  LIMBER_ASSIGN(const ValueId y, r.emit(OpKind::kLayerNorm, {x}, {{"axis", int64_t{axis}}, {"epsilon", q->epsilon}}, name));
  r.replace(r.output(n), y);
  return {};
}

}  // namespace

Status fuse_layer_norm(Graph& graph) { return sweep(graph, layer_norm_rule).status(); }

}  // namespace limber
