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
  if (!std::isfinite(divisor) || std::abs(std::frexp(divisor, &exponent)) != 0.5 || std::abs(exponent) > 100) return {};
  if (r.graph().type(x) != r.graph().type(r.output(n))) return {};
  LIMBER_ASSIGN(const ValueId c, add_scalar(r, dtype, 1 / divisor, "reciprocal"));
  return replace_by(r, n, OpKind::kMul, {x, c});
}

}  // namespace

Status simplify_arithmetic(Rewriter& r, NodeId n) {
  const OpKind op = r.node(n).op;
  if (op != OpKind::kAdd && op != OpKind::kSub && op != OpKind::kMul && op != OpKind::kDiv && op != OpKind::kPow) return {};
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
