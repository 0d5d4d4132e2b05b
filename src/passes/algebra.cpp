#include "passes/algebra.h"

#include <cmath>

#include "passes/match.h"

namespace limber {
namespace {

Status replace_by(Rewriter& r, NodeId n, OpKind op, std::vector<ValueId> inputs) {
  const std::string name = r.node(n).name;
  LIMBER_ASSIGN(const ValueId v, r.emit(op, std::move(inputs), {}, name));
  r.replace(r.output(n), v);
  return {};
}

Status simplify_power(Rewriter& r, NodeId n, ValueId x, double exponent) {
  if (exponent == 1.0) {
    r.replace(r.output(n), x);
  } else if (r.graph().type(x) != r.graph().type(r.output(n))) {
    return {};
  } else if (exponent == 2.0) {
    return replace_by(r, n, OpKind::kMul, {x, x});
  } else if (!is_float(r.graph().type(x).dtype)) {
    return {};
  } else if (exponent == 0.5) {
    return replace_by(r, n, OpKind::kSqrt, {x});
  } else if (exponent == -1.0) {
    return replace_by(r, n, OpKind::kReciprocal, {x});
  }
  return {};
}

// x / c is x * (1/c) to the bit when 1/c is exact.
Status divide_by_power_of_two(Rewriter& r, NodeId n, ValueId x, double divisor) {
  const DType dtype = r.graph().type(x).dtype;
  int exponent = 0;
  if (dtype != DType::kF32 && dtype != DType::kF64) return {};
  if (!std::isfinite(divisor) || std::abs(std::frexp(divisor, &exponent)) != 0.5 || std::abs(exponent) > 100)
    return {};
  if (r.graph().type(x) != r.graph().type(r.output(n))) return {};
  LIMBER_ASSIGN(const ValueId c, add_scalar(r, dtype, 1 / divisor, "reciprocal"));
  return replace_by(r, n, OpKind::kMul, {x, c});
}

// --- limits: Max, Min, Relu and Clip are all clip(x, low, high) ------------------------------------------

struct Limits {
  ValueId x;
  double low = -INFINITY, high = INFINITY;
};

std::optional<Limits> as_limits(const Rewriter& r, NodeId n) {
  const Node& node = r.node(n);
  switch (node.op) {
    case OpKind::kRelu:
      return Limits{node.inputs[0], 0};
    case OpKind::kClip:
      return Limits{node.inputs[0], node.attrs.f("min", -INFINITY), node.attrs.f("max", INFINITY)};
    case OpKind::kMax:
    case OpKind::kMin:
      break;
    default:
      return std::nullopt;
  }
  for (size_t i = 0; i < 2; ++i) {
    const ValueId x = node.inputs[i];
    const auto c = scalar_constant(r.graph(), node.inputs[1 - i]);
    if (!c || std::isnan(*c) || r.graph().type(x) != r.graph().type(node.outputs[0])) continue;
    return node.op == OpKind::kMax ? Limits{x, *c} : Limits{x, -INFINITY, *c};
  }
  return std::nullopt;
}

// Merges limits of limits; writes them as Relu or Clip.
Status simplify_limits(Rewriter& r, NodeId n) {
  auto limits = as_limits(r, n);
  if (!limits || !is_float(r.graph().type(limits->x).dtype) || !(limits->low <= limits->high)) return {};
  const bool written = r.node(n).op == OpKind::kRelu ||
                       (r.node(n).op == OpKind::kClip && (limits->low != 0 || limits->high != INFINITY));
  const NodeId above = r.graph().value(limits->x).producer;
  const auto inner = above != kNoNode && r.used_once(limits->x) ? as_limits(r, above) : std::nullopt;
  const bool merges = inner && inner->low <= inner->high;
  if (written && !merges) return {};
  if (merges) {
    const auto limit = [&](double v) { return std::min(std::max(v, limits->low), limits->high); };
    limits = Limits{inner->x, limit(inner->low), limit(inner->high)};
  }
  const bool relu = limits->low == 0 && limits->high == INFINITY;
  const std::string name = r.node(n).name;
  Attrs attrs;
  if (!relu) attrs = {{"min", limits->low}, {"max", limits->high}};
  LIMBER_ASSIGN(const ValueId v,
                r.emit(relu ? OpKind::kRelu : OpKind::kClip, {limits->x}, std::move(attrs), name));
  r.replace(r.output(n), v);
  return {};
}

}  // namespace

Status simplify_arithmetic(Rewriter& r, NodeId n) {
  const OpKind op = r.node(n).op;
  if (op == OpKind::kMax || op == OpKind::kMin || op == OpKind::kClip || op == OpKind::kRelu)
    return simplify_limits(r, n);
  if (op != OpKind::kAdd && op != OpKind::kSub && op != OpKind::kMul && op != OpKind::kDiv &&
      op != OpKind::kPow)
    return {};
  const ValueId a = r.input(n, 0), b = r.input(n, 1), y = r.output(n);
  const auto left = scalar_constant(r.graph(), a), right = scalar_constant(r.graph(), b);
  const bool commutes = op == OpKind::kAdd || op == OpKind::kMul;
  const double neutral = op == OpKind::kAdd || op == OpKind::kSub ? 0.0 : 1.0;
  if (right && *right == neutral && r.replace(y, a)) return {};
  if (left && commutes && *left == neutral && r.replace(y, b)) return {};
  if (right && op == OpKind::kPow) return simplify_power(r, n, a, *right);
  if (right && op == OpKind::kDiv) return divide_by_power_of_two(r, n, a, *right);
  return {};
}

}  // namespace limber
