#include "passes/match.h"
#include "passes/passes.h"

namespace limber {
namespace {

// The axes of the mean of `x` that `v` is, with keepdims; empty when it is none.
std::vector<int64_t> mean_axes(const Rewriter& r, ValueId v, ValueId x) {
  const NodeId mean = r.producer(v, OpKind::kReduceMean);
  if (mean == kNoNode || r.input(mean, 0) != x || r.node(mean).attrs.i("keepdims", 1) != 1) return {};
  return r.node(mean).attrs.ints("axes");
}

bool are_last(const std::vector<int64_t>& axes, int rank) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != rank - static_cast<int64_t>(axes.size() - i)) return false;
  }
  return !axes.empty();
}

// d * d, or d to the power of 2.
bool is_square(const Rewriter& r, ValueId v, ValueId d) {
  if (const NodeId mul = r.producer(v, OpKind::kMul); mul != kNoNode)
    return r.input(mul, 0) == d && r.input(mul, 1) == d;
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

Result<ValueId> emit_layer_norm(Rewriter& r, ValueId x, int64_t axis, double epsilon,
                                const std::string& name) {
  return r.emit(OpKind::kLayerNorm, {x}, {{"axis", axis}, {"epsilon", epsilon}}, name);
}

// Over axis 1 of [N,C,..]: channels go last, and back.
Result<ValueId> emit_channel_norm(Rewriter& r, ValueId x, double epsilon, const std::string& name) {
  const int64_t rank = r.graph().type(x).rank();
  std::vector<int64_t> last{0}, back{0, rank - 1};
  for (int64_t i = 2; i < rank; ++i) last.push_back(i), back.push_back(i - 1);
  last.push_back(1);
  LIMBER_ASSIGN(const ValueId turned, r.emit(OpKind::kTranspose, {x}, {{"perm", last}}, name + "/last"));
  LIMBER_ASSIGN(const ValueId y, emit_layer_norm(r, turned, rank - 1, epsilon, name));
  return r.emit(OpKind::kTranspose, {y}, {{"perm", back}}, name + "/back");
}

Status layer_norm_rule(Rewriter& r, NodeId n) {
  const auto q = as_quotient(r, n);
  if (!q) return {};
  const NodeId sub = r.producer(q->d, OpKind::kSub);
  const NodeId variance = r.producer(q->variance, OpKind::kReduceMean);
  if (sub == kNoNode || variance == kNoNode || !r.used_once(q->variance)) return {};
  const ValueId x = r.input(sub, 0), square = r.input(variance, 0);
  const auto axes = mean_axes(r, r.input(sub, 1), x);
  const int rank = r.graph().type(x).rank();
  const bool channels = rank > 2 && axes == std::vector<int64_t>{1};
  if ((!channels && !are_last(axes, rank)) || mean_axes(r, q->variance, square) != axes) return {};
  if (!is_square(r, square, q->d) || !r.used_once(square)) return {};
  if (r.graph().type(x) != r.graph().type(r.output(n))) return {};
  const std::string name = r.node(n).name;
  LIMBER_ASSIGN(const ValueId y, channels ? emit_channel_norm(r, x, q->epsilon, name)
                                          : emit_layer_norm(r, x, axes[0], q->epsilon, name));
  r.replace(r.output(n), y);
  return {};
}

// --- GroupNorm: an InstanceNorm of [N, groups, rest] that is reshaped back ---------------------------------

bool all_close_to(const Graph& graph, ValueId v, double expected) {
  const Value& value = graph.value(v);
  if (value.role != Role::kConstant) return false;
  for (int64_t i = 0; i < value.constant.elements(); ++i) {
    if (element_as_double(value.constant, i) != expected) return false;
  }
  return true;
}

Result<ValueId> add_vector(Rewriter& r, DType dtype, const Dim& size, double value, const std::string& name) {
  LIMBER_ASSIGN(const ValueId scalar, add_scalar(r, dtype, value, name + "/value"));
  return r.emit(OpKind::kExpand, {scalar}, {{"shape", Shape{size}}}, name);
}

Status group_norm_rule(Rewriter& r, NodeId n) {
  if (r.node(n).op != OpKind::kReshape) return {};
  const NodeId norm = r.producer(r.input(n, 0), OpKind::kInstanceNorm);
  if (norm == kNoNode || !r.used_once(r.input(n, 0))) return {};
  const NodeId split = r.producer(r.input(norm, 0), OpKind::kReshape);
  if (split == kNoNode || !all_close_to(r.graph(), r.input(norm, 1), 1) ||
      !all_close_to(r.graph(), r.input(norm, 2), 0))
    return {};
  const ValueId x = r.input(split, 0);
  const TensorType type = r.graph().type(x), grouped = r.graph().type(r.input(norm, 0));
  if (type != r.graph().type(r.output(n)) || type.rank() < 3 || !grouped.shape[1].is_constant()) return {};
  const int64_t groups = grouped.shape[1].value();
  const bool divides = type.shape[1].is_constant() && groups > 0 && type.shape[1].value() % groups == 0;
  if (type.shape[0] != grouped.shape[0] || !divides) return {};
  const std::string name = r.node(norm).name;
  const double epsilon = r.node(norm).attrs.f("epsilon");
  LIMBER_ASSIGN(const ValueId scale, add_vector(r, type.dtype, type.shape[1], 1, name + "/scale"));
  LIMBER_ASSIGN(const ValueId bias, add_vector(r, type.dtype, type.shape[1], 0, name + "/bias"));
  LIMBER_ASSIGN(const ValueId y, r.emit(OpKind::kGroupNorm, {x, scale, bias},
                                        {{"groups", groups}, {"epsilon", epsilon}}, name));
  r.replace(r.output(n), y);
  return {};
}

Status norm_rule(Rewriter& r, NodeId n) {
  LIMBER_TRY(group_norm_rule(r, n));
  return r.dead(n) ? Status() : layer_norm_rule(r, n);
}

}  // namespace

Status fuse_norms(Graph& graph) { return sweep(graph, norm_rule).status(); }

}  // namespace limber
