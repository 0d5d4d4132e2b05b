// Elements of any dtype, seen through the type arithmetic on them is done in: double for the floating
// types, int64_t for integers and bool, uint64_t for u64. Wider than the storage, so that the result
// carries one rounding and is an oracle for faster kernels.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tensor/tensor.h"

namespace limber::ref {

// The one rule for changing numbers between types. Float to integer truncates and saturates, NaN is 0;
// integer to integer keeps the low bits.
template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(value)) return 0;
    if (value <= static_cast<From>(Limits::lowest())) return Limits::lowest();
    if (value >= std::ldexp(From(1), Limits::digits)) return Limits::max();
  }
  return static_cast<To>(value);
}

// double to float, rounded to odd: rounding the result again to a 16-bit type then gives what rounding
// the double directly would have given.
inline float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (!std::isfinite(nearest) || static_cast<double>(nearest) == value) return nearest;
  auto bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

// How one dtype is stored: Raw in memory, decode to a number, encode from any number.
template <typename T>
struct PlainCodec {
  using Raw = T;
  static T decode(Raw raw) { return raw; }
  template <typename C>
  static Raw encode(C value) {
    return convert<T>(value);
  }
};
struct HalfCodec {
  using Raw = uint16_t;
  static float decode(Raw raw) { return half_to_float(raw); }
  template <typename C>
  static Raw encode(C value) {
    return float_to_half(round_to_odd(static_cast<double>(value)));
  }
};
struct BFloat16Codec {
  using Raw = uint16_t;
  static float decode(Raw raw) { return bfloat16_to_float(raw); }
  template <typename C>
  static Raw encode(C value) {
    return float_to_bfloat16(round_to_odd(static_cast<double>(value)));
  }
};
// Any byte but 0 is true, whoever wrote it.
struct BoolCodec {
  using Raw = uint8_t;
  static uint8_t decode(Raw raw) { return raw != 0 ? 1 : 0; }
  template <typename C>
  static Raw encode(C value) {
    return value != 0 ? 1 : 0;
  }
};

template <typename F>
auto with_codec(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF32:
      return f(PlainCodec<float>{});
    case DType::kF64:
      return f(PlainCodec<double>{});
    case DType::kF16:
      return f(HalfCodec{});
    case DType::kBF16:
      return f(BFloat16Codec{});
    case DType::kI8:
      return f(PlainCodec<int8_t>{});
    case DType::kU8:
      return f(PlainCodec<uint8_t>{});
    case DType::kI16:
      return f(PlainCodec<int16_t>{});
    case DType::kU16:
      return f(PlainCodec<uint16_t>{});
    case DType::kI32:
      return f(PlainCodec<int32_t>{});
    case DType::kU32:
      return f(PlainCodec<uint32_t>{});
    case DType::kI64:
      return f(PlainCodec<int64_t>{});
    case DType::kU64:
      return f(PlainCodec<uint64_t>{});
    case DType::kBool:
      return f(BoolCodec{});
  }
  LIMBER_UNREACHABLE();
}
// The same for the four floating types. REQUIRES: is_float(dtype)
template <typename F>
auto with_float_codec(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF32:
      return f(PlainCodec<float>{});
    case DType::kF64:
      return f(PlainCodec<double>{});
    case DType::kF16:
      return f(HalfCodec{});
    case DType::kBF16:
      return f(BFloat16Codec{});
    default:
      LIMBER_UNREACHABLE();
  }
}

// Element i of a buffer of some dtype as a C (double, int64_t or uint64_t), converted when C is not
// what the dtype computes in.
template <typename C>
struct Access {
  C (*load)(const void* base, int64_t i) = nullptr;
  void (*store)(void* base, int64_t i, C value) = nullptr;
};
template <typename C>
Access<C> access(DType dtype);
extern template Access<double> access<double>(DType);
extern template Access<int64_t> access<int64_t>(DType);
extern template Access<uint64_t> access<uint64_t>(DType);

// Calls f with a zero of the type that arithmetic on `dtype` is done in.
template <typename F>
auto with_domain(DType dtype, F&& f) {
  if (is_float(dtype)) return f(double{});
  if (dtype == DType::kU64) return f(uint64_t{});
  return f(int64_t{});
}

// The smallest and largest number of a dtype (infinities for floats).
template <typename C>
C lowest(DType dtype);
template <typename C>
C highest(DType dtype);

// Arithmetic that wraps around for integers.
template <typename C>
C wrapping_add(C a, C b) {
  if constexpr (std::is_floating_point_v<C>)
    return a + b;
  else
    return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <typename C>
C wrapping_sub(C a, C b) {
  if constexpr (std::is_floating_point_v<C>)
    return a - b;
  else
    return static_cast<C>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
template <typename C>
C wrapping_mul(C a, C b) {
  if constexpr (std::is_floating_point_v<C>)
    return a * b;
  else
    return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <typename C>
bool is_nan(C value) {
  if constexpr (std::is_floating_point_v<C>)
    return std::isnan(value);
  else
    return false;
}
// NaN wins, as in numpy.
template <typename C>
C maximum(C a, C b) {
  return is_nan(a) || a > b ? a : b;
}
template <typename C>
C minimum(C a, C b) {
  return is_nan(a) || a < b ? a : b;
}

}  // namespace limber::ref
