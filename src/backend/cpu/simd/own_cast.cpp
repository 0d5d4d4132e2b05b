#include <cmath>
#include <limits>
#include <type_traits>

#include "backend/cpu/simd/own_families.h"

namespace limber::own {
namespace {

// How each dtype is read and written; Number is what it is between.
template <typename T>
struct Stored {
  using Raw = T;
  static T get(T raw) { return raw; }
  template <typename From>
  static T put(From value) {
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<T>) {
      // Truncates and saturates; NaN is 0.
      if (!(value > static_cast<From>(std::numeric_limits<T>::lowest()))) {
        return std::isnan(value) ? T(0) : std::numeric_limits<T>::lowest();
      }
      if (value >= std::ldexp(From(1), std::numeric_limits<T>::digits)) return std::numeric_limits<T>::max();
    }
    return static_cast<T>(value);
  }
};
struct StoredBool {
  using Raw = uint8_t;
  static uint8_t get(uint8_t raw) { return raw != 0; }
  template <typename From>
  static uint8_t put(From value) {
    return value != From(0);
  }
};
struct StoredHalf {
  using Raw = uint16_t;
  static float get(uint16_t raw) { return half_to_float(raw); }
  template <typename From>
  static uint16_t put(From value) {
    return float_to_half(static_cast<float>(value));
  }
};
struct StoredBFloat16 {
  using Raw = uint16_t;
  static float get(uint16_t raw) { return bfloat16_to_float(raw); }
  template <typename From>
  static uint16_t put(From value) {
    return float_to_bfloat16(static_cast<float>(value));
  }
};

template <typename F>
KernelPtr with_storage(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF32:
      return f(Stored<float>{});
    case DType::kF64:
      return f(Stored<double>{});
    case DType::kF16:
      return f(StoredHalf{});
    case DType::kBF16:
      return f(StoredBFloat16{});
    case DType::kI8:
      return f(Stored<int8_t>{});
    case DType::kU8:
      return f(Stored<uint8_t>{});
    case DType::kI32:
      return f(Stored<int32_t>{});
    case DType::kI64:
      return f(Stored<int64_t>{});
    case DType::kBool:
      return f(StoredBool{});
    default:
      return nullptr;
  }
}

template <typename From, typename To>
void convert_range(const void* x, void* y, int64_t begin, int64_t end) {
  const auto* src = static_cast<const typename From::Raw*>(x);
  auto* dst = static_cast<typename To::Raw*>(y);
  for (int64_t i = begin; i < end; ++i) dst[i] = To::put(From::get(src[i]));
}

}  // namespace

KernelPtr make_cast(const Graph& graph, const Node& node) {
  const TensorType& type = input_type(graph, node, 0);
  const int64_t n = type.shape.elements();
  const DType to = output_type(graph, node).dtype;
  // Rounding twice could differ from rounding once: left to a backend that computes in double.
  if (type.dtype == DType::kF64 && (to == DType::kF16 || to == DType::kBF16)) return nullptr;
  return with_storage(type.dtype, [&](auto from) {
    return with_storage(to, [&](auto stored) {
      const auto convert = &convert_range<decltype(from), decltype(stored)>;
      return make_kernel([=](const KernelIo& io) {
        const void* x = io.inputs[0];
        void* y = io.outputs[0];
        for_elements(n, kGrain, [=](int64_t begin, int64_t end) { convert(x, y, begin, end); });
      });
    });
  });
}

}  // namespace limber::own
