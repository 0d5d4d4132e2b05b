#include <cmath>
#include <numbers>

#include "ops/gradients.h"
#include "ops/rules.h"

namespace limber::gradients {
namespace {

ValueId unary(GradientContext& g, OpKind op, ValueId a) { return g.emit(op, {a}); }

// 1 + factor * x^2
ValueId one_plus_square(GradientContext& g, ValueId x, double factor) {
  return g.add(g.scale(square(g, x), factor), g.number(1, x));
}

// The number when the value is a constant of one element.
std::optional<double> constant_number(const GradientContext& g, ValueId v) {
  const Tensor tensor = g.constant_of(v);
  if (!tensor.valid() || tensor.elements() != 1) return std::nullopt;
  return element_as_double(tensor, 0);
}

ValueId as_dtype(GradientContext& g, ValueId a, DType dtype) {
  if (g.type(a).dtype == dtype) return a;
  return g.emit(OpKind::kCast, {a}, {{"to", std::string(dtype_name(dtype))}});
}

// b * a^(b-1)
ValueId pow_slope(GradientContext& g, ValueId a, ValueId b) {
  if (const auto exponent = constant_number(g, b)) {
    if (*exponent == 2) return g.scale(a, 2);
    return g.scale(g.emit(OpKind::kPow, {a, g.number(*exponent - 1, a)}), *exponent);
  }
  const ValueId power = as_dtype(g, b, g.type(a).dtype);
  const ValueId slope = g.mul(power, g.emit(OpKind::kPow, {a, g.sub(power, g.number(1, a))}));
  return choose(g, compare(g, OpKind::kEqual, power, 0), g.number(0, a), slope);
}

// Both at once: what one side of a tie gets, the other does not.
void extreme(GradientContext& g, OpKind wins) {
  const ValueId a = g.x(0), b = g.x(1), dy = g.dy();
  const ValueId won = keep_where(g, g.emit(wins, {a, b}), dy);
  const ValueId da = choose(g, g.emit(OpKind::kEqual, {a, b}), g.scale(dy, 0.5), won);
  g.give(0, da);
  if (g.wants(1)) g.give(1, g.sub(dy, da));
}

}  // namespace

// --- one input ------------------------------------------------------------------------------------------

void identity(GradientContext& g) { g.give(0, g.dy()); }
void cast(GradientContext& g) { g.give(0, as_dtype(g, g.dy(), g.type(g.x(0)).dtype)); }
void abs(GradientContext& g) { g.give(0, g.mul(g.dy(), unary(g, OpKind::kSign, g.x(0)))); }
void neg(GradientContext& g) { g.give(0, g.neg(g.dy())); }
void reciprocal(GradientContext& g) { g.give(0, g.neg(g.mul(g.dy(), square(g, g.y())))); }
void sqrt(GradientContext& g) { g.give(0, g.div(g.scale(g.dy(), 0.5), g.y())); }
void exp(GradientContext& g) { g.give(0, g.mul(g.dy(), g.y())); }
void log(GradientContext& g) { g.give(0, g.div(g.dy(), g.x(0))); }

void erf(GradientContext& g) {
  const ValueId density = unary(g, OpKind::kExp, g.neg(square(g, g.x(0))));
  g.give(0, g.mul(g.dy(), g.scale(density, 2 * std::numbers::inv_sqrtpi)));
}

void sin(GradientContext& g) { g.give(0, g.mul(g.dy(), unary(g, OpKind::kCos, g.x(0)))); }
void cos(GradientContext& g) { g.give(0, g.neg(g.mul(g.dy(), unary(g, OpKind::kSin, g.x(0))))); }
void tan(GradientContext& g) { g.give(0, g.mul(g.dy(), one_plus_square(g, g.y(), 1))); }
void asin(GradientContext& g) {
  g.give(0, g.div(g.dy(), unary(g, OpKind::kSqrt, one_plus_square(g, g.x(0), -1))));
}
void acos(GradientContext& g) {
  g.give(0, g.neg(g.div(g.dy(), unary(g, OpKind::kSqrt, one_plus_square(g, g.x(0), -1)))));
}
void atan(GradientContext& g) { g.give(0, g.div(g.dy(), one_plus_square(g, g.x(0), 1))); }
void sinh(GradientContext& g) { g.give(0, g.mul(g.dy(), unary(g, OpKind::kCosh, g.x(0)))); }
void cosh(GradientContext& g) { g.give(0, g.mul(g.dy(), unary(g, OpKind::kSinh, g.x(0)))); }
void asinh(GradientContext& g) {
  g.give(0, g.div(g.dy(), unary(g, OpKind::kSqrt, one_plus_square(g, g.x(0), 1))));
}
void acosh(GradientContext& g) {
  const ValueId x = g.x(0);
  g.give(0, g.div(g.dy(), unary(g, OpKind::kSqrt, g.sub(square(g, x), g.number(1, x)))));
}
void atanh(GradientContext& g) { g.give(0, g.div(g.dy(), one_plus_square(g, g.x(0), -1))); }

void activation(GradientContext& g) {
  const auto act = as_activation(g.node());
  LIMBER_ASSERT(act.has_value());
  const bool from_output = rules::known_from_output(*act);
  Attrs attrs;
  set_activation(attrs, *act);
  if (from_output) attrs.set("from_output", int64_t{1});
  g.give(0, g.emit(OpKind::kActivationBackward, {g.dy(), from_output ? g.y() : g.x(0)}, std::move(attrs)));
}

void softsign(GradientContext& g) {
  const ValueId x = g.x(0);
  g.give(0, g.div(g.dy(), square(g, g.add(unary(g, OpKind::kAbs, x), g.number(1, x)))));
}

// The slope below zero is exp(x / alpha) = y / alpha + 1.
void celu(GradientContext& g) {
  const ValueId y = g.y(), slope = g.add(g.scale(y, 1 / g.attrs().f("alpha")), g.number(1, y));
  g.give(0, choose(g, compare(g, OpKind::kLess, y, 0), g.mul(g.dy(), slope), g.dy()));
}

// The slope below zero is gamma * alpha * exp(x) = y + gamma * alpha.
void selu(GradientContext& g) {
  const double alpha = g.attrs().f("alpha"), gamma = g.attrs().f("gamma");
  const ValueId y = g.y(), slope = g.add(y, g.number(alpha * gamma, y));
  const bool sign_of_y = alpha > 0 && gamma > 0;
  const ValueId below = compare(g, OpKind::kLess, sign_of_y ? y : g.x(0), 0);
  g.give(0, choose(g, below, g.mul(g.dy(), slope), g.scale(g.dy(), gamma)));
}

void thresholded_relu(GradientContext& g) {
  g.give(0, keep_where(g, compare(g, OpKind::kGreater, g.x(0), g.attrs().f("alpha")), g.dy()));
}

void shrink(GradientContext& g) {
  const ValueId size = unary(g, OpKind::kAbs, g.x(0));
  g.give(0, keep_where(g, compare(g, OpKind::kGreater, size, g.attrs().f("lambd")), g.dy()));
}

// --- several inputs ---------------------------------------------------------------------------------------

void add(GradientContext& g) {
  g.give(0, g.dy());
  g.give(1, g.dy());
}

void sub(GradientContext& g) {
  g.give(0, g.dy());
  if (g.wants(1)) g.give(1, g.neg(g.dy()));
}

void mul(GradientContext& g) {
  if (g.wants(0)) g.give(0, g.mul(g.dy(), g.x(1)));
  if (g.wants(1)) g.give(1, g.mul(g.dy(), g.x(0)));
}

void div(GradientContext& g) {
  const ValueId da = g.div(g.dy(), g.x(1));
  g.give(0, da);
  if (g.wants(1)) g.give(1, g.neg(g.mul(da, g.y())));
}

void pow(GradientContext& g) {
  const ValueId a = g.x(0), b = g.x(1);
  if (g.wants(0) && constant_number(g, b) != 0.0) g.give(0, g.mul(g.dy(), pow_slope(g, a, b)));
  if (!g.wants(1)) return;
  const ValueId logarithm = keep_where(g, compare(g, OpKind::kGreater, a, 0), unary(g, OpKind::kLog, a));
  g.give(1, as_dtype(g, g.mul(g.dy(), g.mul(g.y(), logarithm)), g.type(b).dtype));
}

// y = a - n * b with a whole n that does not change in between.
void mod(GradientContext& g) {
  g.give(0, g.dy());
  if (!g.wants(1)) return;
  const ValueId whole = unary(g, OpKind::kRound, g.div(g.sub(g.x(0), g.y()), g.x(1)));
  g.give(1, g.neg(g.mul(g.dy(), whole)));
}

void min(GradientContext& g) { extreme(g, OpKind::kLess); }
void max(GradientContext& g) { extreme(g, OpKind::kGreater); }

void prelu(GradientContext& g) {
  const ValueId x = g.x(0), zero = g.number(0, x), positive = g.emit(OpKind::kGreater, {x, zero});
  if (g.wants(0)) g.give(0, choose(g, positive, g.dy(), g.mul(g.dy(), g.x(1))));
  if (g.wants(1)) g.give(1, choose(g, positive, zero, g.mul(g.dy(), x)));
}

void where(GradientContext& g) {
  const ValueId dy = g.dy();
  if (g.wants(1)) g.give(1, keep_where(g, g.x(0), dy));
  if (g.wants(2)) g.give(2, choose(g, g.x(0), g.number(0, dy), dy));
}

}  // namespace limber::gradients
