#include "backend/ref/unary.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "backend/ref/element.h"
#include "backend/ref/factory.h"

namespace limber::ref {
namespace {

using P = UnaryParams;

double clip(double x, double low, double high) {
  if (x < low) x = low;
  return x > high ? high : x;
}
double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double softplus(double x) { return (x > 0 ? x : 0.0) + std::log1p(std::exp(-std::fabs(x))); }
double gelu(double x, bool tanh_form) {
  if (!tanh_form) return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
  const double inner = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(inner));
}
double shrink(double x, double lambd, double bias) {
  return x < -lambd ? x + bias : x > lambd ? x - bias : 0.0;
}
double sign(double x) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); }

using UnaryFn = double (*)(double, const P&);

UnaryFn function_of(OpKind op) {
  switch (op) {
    case OpKind::kIdentity:
      return [](double x, const P&) { return x; };
    case OpKind::kAbs:
      return [](double x, const P&) { return std::fabs(x); };
    case OpKind::kNeg:
      return [](double x, const P&) { return -x; };
    case OpKind::kSign:
      return [](double x, const P&) { return sign(x); };
    case OpKind::kReciprocal:
      return [](double x, const P&) { return 1.0 / x; };
    case OpKind::kFloor:
      return [](double x, const P&) { return std::floor(x); };
    case OpKind::kCeil:
      return [](double x, const P&) { return std::ceil(x); };
    case OpKind::kRound:
      return [](double x, const P&) { return std::nearbyint(x); };
    case OpKind::kSqrt:
      return [](double x, const P&) { return std::sqrt(x); };
    case OpKind::kExp:
      return [](double x, const P&) { return std::exp(x); };
    case OpKind::kLog:
      return [](double x, const P&) { return std::log(x); };
    case OpKind::kErf:
      return [](double x, const P&) { return std::erf(x); };
    case OpKind::kSin:
      return [](double x, const P&) { return std::sin(x); };
    case OpKind::kCos:
      return [](double x, const P&) { return std::cos(x); };
    case OpKind::kTan:
      return [](double x, const P&) { return std::tan(x); };
    case OpKind::kAsin:
      return [](double x, const P&) { return std::asin(x); };
    case OpKind::kAcos:
      return [](double x, const P&) { return std::acos(x); };
    case OpKind::kAtan:
      return [](double x, const P&) { return std::atan(x); };
    case OpKind::kSinh:
      return [](double x, const P&) { return std::sinh(x); };
    case OpKind::kCosh:
      return [](double x, const P&) { return std::cosh(x); };
    case OpKind::kTanh:
      return [](double x, const P&) { return std::tanh(x); };
    case OpKind::kAsinh:
      return [](double x, const P&) { return std::asinh(x); };
    case OpKind::kAcosh:
      return [](double x, const P&) { return std::acosh(x); };
    case OpKind::kAtanh:
      return [](double x, const P&) { return std::atanh(x); };
    case OpKind::kRelu:
      return [](double x, const P&) { return x < 0 ? 0.0 : x; };
    case OpKind::kSigmoid:
      return [](double x, const P&) { return sigmoid(x); };
    case OpKind::kSilu:
      return [](double x, const P&) { return x * sigmoid(x); };
    case OpKind::kHardSwish:
      return [](double x, const P&) { return x * clip(x / 6.0 + 0.5, 0.0, 1.0); };
    case OpKind::kMish:
      return [](double x, const P&) { return x * std::tanh(softplus(x)); };
    case OpKind::kSoftplus:
      return [](double x, const P&) { return softplus(x); };
    case OpKind::kSoftsign:
      return [](double x, const P&) { return x / (1.0 + std::fabs(x)); };
    case OpKind::kGelu:
      return [](double x, const P& p) { return gelu(x, p.tanh_gelu); };
    case OpKind::kLeakyRelu:
      return [](double x, const P& p) { return x < 0 ? p.a * x : x; };
    case OpKind::kElu:
      return [](double x, const P& p) { return x < 0 ? p.a * std::expm1(x) : x; };
    case OpKind::kCelu:
      return [](double x, const P& p) { return x < 0 ? p.a * std::expm1(x / p.a) : x; };
    case OpKind::kSelu:
      return [](double x, const P& p) { return p.b * (x < 0 ? p.a * std::expm1(x) : x); };
    case OpKind::kThresholdedRelu:
      return [](double x, const P& p) { return x <= p.a ? 0.0 : x; };
    case OpKind::kHardSigmoid:
      return [](double x, const P& p) { return clip(p.a * x + p.b, 0.0, 1.0); };
    case OpKind::kShrink:
      return [](double x, const P& p) { return shrink(x, p.a, p.b); };
    case OpKind::kClip:
      return [](double x, const P& p) { return clip(x, p.a, p.b); };
    default:
      return nullptr;
  }
}

UnaryParams params_of(OpKind op, const Attrs& attrs) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  switch (op) {
    case OpKind::kGelu:
      return {.tanh_gelu = attrs.s("approximate", "none") == "tanh"};
    case OpKind::kLeakyRelu:
    case OpKind::kElu:
    case OpKind::kCelu:
    case OpKind::kThresholdedRelu:
      return {.a = attrs.f("alpha")};
    case OpKind::kSelu:
      return {.a = attrs.f("alpha"), .b = attrs.f("gamma")};
    case OpKind::kHardSigmoid:
      return {.a = attrs.f("alpha"), .b = attrs.f("beta")};
    case OpKind::kShrink:
      return {.a = attrs.f("lambd"), .b = attrs.f("bias")};
    case OpKind::kClip:
      return {.a = attrs.f("min", -kInf), .b = attrs.f("max", kInf)};
    default:
      return {};
  }
}

// Integer functions. `low` and `high` are the limits of Clip.
template <typename C>
using IntegerFn = C (*)(C x, C low, C high);

template <typename C>
IntegerFn<C> integer_function(OpKind op) {
  switch (op) {
    case OpKind::kAbs:
      return [](C x, C, C) { return x < C(0) ? wrapping_sub(C(0), x) : x; };
    case OpKind::kNeg:
      return [](C x, C, C) { return wrapping_sub(C(0), x); };
    case OpKind::kSign:
      return [](C x, C, C) { return static_cast<C>((x > C(0)) - (x < C(0))); };
    case OpKind::kRelu:
      return [](C x, C, C) { return x < C(0) ? C(0) : x; };
    case OpKind::kClip:
      return [](C x, C low, C high) { return std::min(std::max(x, low), high); };
    default:
      return nullptr;
  }
}

template <typename C>
KernelResult make_integer_unary(const NodeView& v, const Unary& unary) {
  const DType dtype = v.in(0).dtype;
  const auto elem = access<C>(dtype);
  const int64_t count = v.in(0).shape.elements();
  const C low = convert<C>(unary.params.a), high = convert<C>(unary.params.b);
  const auto fn = integer_function<C>(v.node.op);
  if (fn == nullptr) return no_kernel(v, dtype);
  return make_kernel([=](const KernelIo& io) {
    for (int64_t i = 0; i < count; ++i)
      elem.store(io.out<void>(0), i, fn(elem.load(io.in<void>(0), i), low, high));
  });
}

KernelResult make_unary(const NodeView& v) {
  const DType dtype = v.in(0).dtype;
  const Unary unary = unary_of(v.node.op, v.attrs());
  const bool integer = is_integer(dtype);
  if (!integer && !is_float(dtype)) return no_kernel(v, dtype);
  if (integer && v.node.op != OpKind::kShrink) {
    return with_domain(dtype, [&](auto zero) { return make_integer_unary<decltype(zero)>(v, unary); });
  }
  const auto elem = access<double>(dtype);
  const int64_t count = v.in(0).shape.elements();
  return make_kernel([=](const KernelIo& io) {
    for (int64_t i = 0; i < count; ++i) elem.store(io.out<void>(0), i, unary(elem.load(io.in<void>(0), i)));
  });
}

// x (float) -> bool.
KernelResult make_float_test(const NodeView& v, bool (*test)(double x, bool negative, bool positive)) {
  if (!is_float(v.in(0).dtype)) return no_kernel(v, v.in(0).dtype);
  const auto load = access<double>(v.in(0).dtype).load;
  const int64_t count = v.in(0).shape.elements();
  const bool negative = v.attrs().i("detect_negative", 1) != 0,
             positive = v.attrs().i("detect_positive", 1) != 0;
  return make_kernel([=](const KernelIo& io) {
    for (int64_t i = 0; i < count; ++i)
      io.out<uint8_t>(0)[i] = test(load(io.in<void>(0), i), negative, positive);
  });
}

KernelResult make_not(const NodeView& v) {
  if (v.in(0).dtype != DType::kBool) return no_kernel(v, v.in(0).dtype);
  const int64_t count = v.in(0).shape.elements();
  return make_kernel([=](const KernelIo& io) {
    for (int64_t i = 0; i < count; ++i) io.out<uint8_t>(0)[i] = io.in<uint8_t>(0)[i] == 0;
  });
}

template <typename C>
KernelResult make_cast_from(const NodeView& v) {
  const auto load = access<C>(v.in(0).dtype).load;
  const auto store = access<C>(v.out(0).dtype).store;
  const int64_t count = v.in(0).shape.elements();
  return make_kernel([=](const KernelIo& io) {
    for (int64_t i = 0; i < count; ++i) store(io.out<void>(0), i, load(io.in<void>(0), i));
  });
}

KernelResult make_cast(const NodeView& v) {
  return with_domain(v.in(0).dtype, [&](auto zero) { return make_cast_from<decltype(zero)>(v); });
}

KernelResult make_copy(const NodeView& v) {
  const size_t bytes = v.in(0).bytes();
  return make_kernel([=](const KernelIo& io) {
    if (bytes != 0) std::memcpy(io.outputs[0], io.inputs[0], bytes);
  });
}

}  // namespace

Unary unary_of(OpKind op, const Attrs& attrs) { return {function_of(op), params_of(op, attrs)}; }

Unary unary_of(const Activation& activation) {
  const Unary unary{function_of(activation.op), {activation.alpha, activation.beta, activation.tanh_gelu}};
  LIMBER_ASSERT(unary.fn != nullptr);
  return unary;
}

LIMBER_REF_KERNEL(Identity, make_copy(v))
LIMBER_REF_KERNEL(Reshape, make_copy(v))
LIMBER_REF_KERNEL(Abs, make_unary(v))
LIMBER_REF_KERNEL(Neg, make_unary(v))
LIMBER_REF_KERNEL(Sign, make_unary(v))
LIMBER_REF_KERNEL(Reciprocal, make_unary(v))
LIMBER_REF_KERNEL(Floor, make_unary(v))
LIMBER_REF_KERNEL(Ceil, make_unary(v))
LIMBER_REF_KERNEL(Round, make_unary(v))
LIMBER_REF_KERNEL(Sqrt, make_unary(v))
LIMBER_REF_KERNEL(Exp, make_unary(v))
LIMBER_REF_KERNEL(Log, make_unary(v))
LIMBER_REF_KERNEL(Erf, make_unary(v))
LIMBER_REF_KERNEL(Sin, make_unary(v))
LIMBER_REF_KERNEL(Cos, make_unary(v))
LIMBER_REF_KERNEL(Tan, make_unary(v))
LIMBER_REF_KERNEL(Asin, make_unary(v))
LIMBER_REF_KERNEL(Acos, make_unary(v))
LIMBER_REF_KERNEL(Atan, make_unary(v))
LIMBER_REF_KERNEL(Sinh, make_unary(v))
LIMBER_REF_KERNEL(Cosh, make_unary(v))
LIMBER_REF_KERNEL(Tanh, make_unary(v))
LIMBER_REF_KERNEL(Asinh, make_unary(v))
LIMBER_REF_KERNEL(Acosh, make_unary(v))
LIMBER_REF_KERNEL(Atanh, make_unary(v))
LIMBER_REF_KERNEL(Relu, make_unary(v))
LIMBER_REF_KERNEL(Sigmoid, make_unary(v))
LIMBER_REF_KERNEL(Silu, make_unary(v))
LIMBER_REF_KERNEL(HardSwish, make_unary(v))
LIMBER_REF_KERNEL(Mish, make_unary(v))
LIMBER_REF_KERNEL(Softplus, make_unary(v))
LIMBER_REF_KERNEL(Softsign, make_unary(v))
LIMBER_REF_KERNEL(Gelu, make_unary(v))
LIMBER_REF_KERNEL(LeakyRelu, make_unary(v))
LIMBER_REF_KERNEL(Elu, make_unary(v))
LIMBER_REF_KERNEL(Celu, make_unary(v))
LIMBER_REF_KERNEL(Selu, make_unary(v))
LIMBER_REF_KERNEL(ThresholdedRelu, make_unary(v))
LIMBER_REF_KERNEL(HardSigmoid, make_unary(v))
LIMBER_REF_KERNEL(Shrink, make_unary(v))
LIMBER_REF_KERNEL(Clip, make_unary(v))
LIMBER_REF_KERNEL(Not, make_not(v))
LIMBER_REF_KERNEL(IsNaN, make_float_test(v, [](double x, bool, bool) { return std::isnan(x); }))
LIMBER_REF_KERNEL(IsInf, make_float_test(v, [](double x, bool negative, bool positive) {
                    return std::isinf(x) && (x < 0 ? negative : positive);
                  }))
LIMBER_REF_KERNEL(Cast, make_cast(v))

}  // namespace limber::ref
