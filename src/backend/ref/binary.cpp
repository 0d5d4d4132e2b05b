// Element-wise operators of several inputs, with numpy broadcasting.
#include <cmath>
#include <cstring>

#include "backend/ref/element.h"
#include "backend/ref/factory.h"

namespace limber::ref {
namespace {

// Integer division never traps: x / 0 is 0 and the lowest number / -1 wraps around to itself.
template <typename C>
C divide(C a, C b) {
  if constexpr (std::is_floating_point_v<C>)
    return a / b;
  else if (b == C(0))
    return 0;
  else if (b == static_cast<C>(-1) && std::is_signed_v<C>)
    return wrapping_sub(C(0), a);
  else
    return a / b;
}

// The remainder with the sign of a; x mod 0 is 0 for integers.
template <typename C>
C c_mod(C a, C b) {
  if constexpr (std::is_floating_point_v<C>)
    return std::fmod(a, b);
  else if (b == C(0) || (b == static_cast<C>(-1) && std::is_signed_v<C>))
    return 0;
  else
    return a % b;
}

// The remainder with the sign of b.
template <typename C>
C python_mod(C a, C b) {
  const C r = c_mod(a, b);
  return r != C(0) && ((r < C(0)) != (b < C(0))) ? r + b : r;
}

template <typename C>
C shift_left(C a, C b) {
  const auto bits = static_cast<uint64_t>(b);
  return bits >= 64 ? C(0) : static_cast<C>(static_cast<uint64_t>(a) << bits);
}
template <typename C>
C shift_right(C a, C b) {
  const auto bits = static_cast<uint64_t>(b);
  return bits >= 64 ? C(0) : static_cast<C>(static_cast<uint64_t>(a) >> bits);
}

template <typename C>
C prelu(C x, C slope) {
  return x < C(0) ? wrapping_mul(x, slope) : x;
}

template <typename C>
using BinaryFn = C (*)(C a, C b);

template <typename C>
BinaryFn<C> binary_function(const Node& node) {
  switch (node.op) {
    case OpKind::kAdd:
      return &wrapping_add<C>;
    case OpKind::kSub:
      return &wrapping_sub<C>;
    case OpKind::kMul:
      return &wrapping_mul<C>;
    case OpKind::kDiv:
      return &divide<C>;
    case OpKind::kMod:
      return node.attrs.i("fmod", 0) != 0 ? &c_mod<C> : &python_mod<C>;
    case OpKind::kMin:
      return &minimum<C>;
    case OpKind::kMax:
      return &maximum<C>;
    case OpKind::kPRelu:
      return &prelu<C>;
    case OpKind::kBitShift:
      if constexpr (std::is_integral_v<C>)
        return node.attrs.i("left") != 0 ? &shift_left<C> : &shift_right<C>;
      else
        return nullptr;
    default:
      return nullptr;
  }
}

template <typename C>
using CompareFn = bool (*)(C a, C b);

template <typename C>
CompareFn<C> compare_function(OpKind op) {
  switch (op) {
    case OpKind::kEqual:
      return [](C a, C b) { return a == b; };
    case OpKind::kLess:
      return [](C a, C b) { return a < b; };
    case OpKind::kLessOrEqual:
      return [](C a, C b) { return a <= b; };
    case OpKind::kGreater:
      return [](C a, C b) { return a > b; };
    case OpKind::kGreaterOrEqual:
      return [](C a, C b) { return a >= b; };
    case OpKind::kAnd:
      return [](C a, C b) { return a != C(0) && b != C(0); };
    case OpKind::kOr:
      return [](C a, C b) { return a != C(0) || b != C(0); };
    case OpKind::kXor:
      return [](C a, C b) { return (a != C(0)) != (b != C(0)); };
    default:
      return nullptr;
  }
}

std::array<Dims, 2> operand_strides(const NodeView& v) {
  const Shape& shape = v.out(0).shape;
  return {broadcast_strides(v.in(0).shape, shape), broadcast_strides(v.in(1).shape, shape)};
}

// y[i] = f(a[i], b[i]), with In the type a and b are read as.
template <typename In, typename F>
KernelResult make_elementwise(const NodeView& v, const Access<In>& a, const Access<In>& b, F store_result) {
  const Dims dims = v.out_dims(0);
  const auto strides = operand_strides(v);
  return make_kernel([=](const KernelIo& io) {
    int64_t i = 0;
    walk<2>(dims, strides, [&](const Dims&, const std::array<int64_t, 2>& at) {
      store_result(io.outputs[0], i++, a.load(io.inputs[0], at[0]), b.load(io.inputs[1], at[1]));
    });
  });
}

KernelResult make_arithmetic(const NodeView& v) {
  const DType dtype = v.in(0).dtype;
  if (dtype == DType::kBool || v.in(1).dtype != dtype || v.out(0).dtype != dtype) return no_kernel(v, dtype);
  if (v.node.op == OpKind::kBitShift && (is_float(dtype) || is_signed(dtype))) return no_kernel(v, dtype);
  return with_domain(dtype, [&](auto zero) {
    using C = decltype(zero);
    const auto elem = access<C>(dtype);
    const auto fn = binary_function<C>(v.node);
    return make_elementwise(v, elem, elem, [=](void* y, int64_t i, C a, C b) { elem.store(y, i, fn(a, b)); });
  });
}

KernelResult make_comparison(const NodeView& v) {
  const DType dtype = v.in(0).dtype;
  const bool logic = v.node.op == OpKind::kAnd || v.node.op == OpKind::kOr || v.node.op == OpKind::kXor;
  const bool bools = dtype == DType::kBool;
  if (v.in(1).dtype != dtype || (logic && !bools) || (bools && !logic && v.node.op != OpKind::kEqual)) {
    return no_kernel(v, dtype);
  }
  return with_domain(dtype, [&](auto zero) {
    using C = decltype(zero);
    const auto elem = access<C>(dtype);
    const auto fn = compare_function<C>(v.node.op);
    return make_elementwise(v, elem, elem,
                            [=](void* y, int64_t i, C a, C b) { static_cast<uint8_t*>(y)[i] = fn(a, b); });
  });
}

// a^b by squaring, wrapping around. A negative exponent truncates 1 / a^-b; 0 to a negative power is 0.
int64_t integer_pow(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
  int64_t result = 1;
  for (; b != 0; b >>= 1) {
    if (b & 1) result = wrapping_mul(result, a);
    a = wrapping_mul(a, a);
  }
  return result;
}

KernelResult make_pow(const NodeView& v) {
  const DType base = v.in(0).dtype, exponent = v.in(1).dtype;
  if (base == DType::kBool || exponent == DType::kBool || v.out(0).dtype != base) return no_kernel(v, base);
  if (is_integer(base) && is_integer(exponent)) {
    const auto elem = access<int64_t>(base);
    return make_elementwise(
        v, elem, access<int64_t>(exponent),
        [=](void* y, int64_t i, int64_t a, int64_t b) { elem.store(y, i, integer_pow(a, b)); });
  }
  const auto elem = access<double>(base);
  return make_elementwise(v, elem, access<double>(exponent),
                          [=](void* y, int64_t i, double a, double b) { elem.store(y, i, std::pow(a, b)); });
}

KernelResult make_where(const NodeView& v) {
  if (v.in(0).dtype != DType::kBool) return no_kernel(v, v.in(0).dtype);
  if (v.in(1).dtype != v.in(2).dtype) return no_kernel(v, v.in(2).dtype);
  const Dims dims = v.out_dims(0);
  const Shape& shape = v.out(0).shape;
  const std::array<Dims, 3> strides = {broadcast_strides(v.in(0).shape, shape),
                                       broadcast_strides(v.in(1).shape, shape),
                                       broadcast_strides(v.in(2).shape, shape)};
  const size_t size = dtype_size(v.out(0).dtype);
  return make_kernel([=](const KernelIo& io) {
    int64_t i = 0;
    walk<3>(dims, strides, [&](const Dims&, const std::array<int64_t, 3>& at) {
      const size_t pick = io.in<uint8_t>(0)[at[0]] != 0 ? 1 : 2;
      copy_element(io.outputs[0], i++, io.inputs[pick], at[pick], size);
    });
  });
}

}  // namespace

LIMBER_REF_KERNEL(Add, make_arithmetic(v))
LIMBER_REF_KERNEL(Sub, make_arithmetic(v))
LIMBER_REF_KERNEL(Mul, make_arithmetic(v))
LIMBER_REF_KERNEL(Div, make_arithmetic(v))
LIMBER_REF_KERNEL(Pow, make_pow(v))
LIMBER_REF_KERNEL(Mod, make_arithmetic(v))
LIMBER_REF_KERNEL(Min, make_arithmetic(v))
LIMBER_REF_KERNEL(Max, make_arithmetic(v))
LIMBER_REF_KERNEL(PRelu, make_arithmetic(v))
LIMBER_REF_KERNEL(BitShift, make_arithmetic(v))
LIMBER_REF_KERNEL(And, make_comparison(v))
LIMBER_REF_KERNEL(Or, make_comparison(v))
LIMBER_REF_KERNEL(Xor, make_comparison(v))
LIMBER_REF_KERNEL(Equal, make_comparison(v))
LIMBER_REF_KERNEL(Less, make_comparison(v))
LIMBER_REF_KERNEL(LessOrEqual, make_comparison(v))
LIMBER_REF_KERNEL(Greater, make_comparison(v))
LIMBER_REF_KERNEL(GreaterOrEqual, make_comparison(v))
LIMBER_REF_KERNEL(Where, make_where(v))

}  // namespace limber::ref
