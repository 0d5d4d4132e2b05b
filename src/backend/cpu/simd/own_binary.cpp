#include <cmath>
#include <optional>
#include <type_traits>

#include "backend/cpu/simd/own_families.h"

namespace limber::own {
namespace {

// One vector function over the two innermost loops.
KernelPtr make_simd(StridedLoop loop, SimdBinary op) {
  const auto function = simd().binary[static_cast<size_t>(op)];
  return make_kernel([loop = std::move(loop), function](const KernelIo& io) {
    const float *a = io.in<float>(0), *b = io.in<float>(1);
    float* y = io.out<float>(0);
    loop.run(kGrain, [&](const LoopPart& part) {
      const BinaryLoop inner{part.rows,          part.cols,          loop.row_stride(0),
                             loop.row_stride(1), loop.col_stride(0), loop.col_stride(1)};
      function(a + part.in[0], b + part.in[1], y + part.out, inner);
    });
  });
}

// Any element types and function; the compiler sees the loop and vectorises what it can.
template <typename In, typename Out, typename F>
KernelPtr make_scalar(StridedLoop loop, F f, int64_t grain = kGrain) {
  return make_kernel([loop = std::move(loop), f, grain](const KernelIo& io) {
    const In *a = io.in<In>(0), *b = io.in<In>(1);
    Out* y = io.out<Out>(0);
    const int64_t a_col = loop.col_stride(0), b_col = loop.col_stride(1);
    loop.run(grain, [&](const LoopPart& part) {
      for (int64_t r = 0; r < part.rows; ++r) {
        const In* pa = a + part.in[0] + r * loop.row_stride(0);
        const In* pb = b + part.in[1] + r * loop.row_stride(1);
        Out* py = y + part.out + r * part.cols;
        if (a_col == 1 && b_col == 1) {
          for (int64_t i = 0; i < part.cols; ++i) py[i] = f(pa[i], pb[i]);
        } else if (b_col == 0) {
          const In vb = *pb;
          for (int64_t i = 0; i < part.cols; ++i) py[i] = f(pa[i * a_col], vb);
        } else {
          for (int64_t i = 0; i < part.cols; ++i) py[i] = f(pa[i * a_col], pb[i * b_col]);
        }
      }
    });
  });
}

std::optional<SimdBinary> vector_function(OpKind op) {
  switch (op) {
    case OpKind::kAdd:
      return SimdBinary::kAdd;
    case OpKind::kSub:
      return SimdBinary::kSub;
    case OpKind::kMul:
      return SimdBinary::kMul;
    case OpKind::kDiv:
      return SimdBinary::kDiv;
    case OpKind::kMin:
      return SimdBinary::kMin;
    case OpKind::kMax:
      return SimdBinary::kMax;
    case OpKind::kPRelu:
      return SimdBinary::kPRelu;
    default:
      return std::nullopt;
  }
}

// x ^ b for a constant b that is cheaper than a power; nullopt: none of them.
std::optional<SimdUnary> cheap_power(const Graph& graph, const Node& node) {
  const Value& exponent = graph.value(node.inputs[1]);
  if (exponent.role != Role::kConstant || exponent.type.shape.elements() != 1) return std::nullopt;
  const double p = element_as_double(exponent.constant, 0);
  if (p == 2) return SimdUnary::kSquare;
  if (p == 3) return SimdUnary::kCube;
  if (p == -1) return SimdUnary::kReciprocal;
  return std::nullopt;
}

KernelPtr make_pow(const Graph& graph, const Node& node, StridedLoop loop) {
  if (input_type(graph, node, 0) == output_type(graph, node)) {
    if (const auto op = cheap_power(graph, node)) {
      const auto function = simd().unary[static_cast<size_t>(*op)];
      const int64_t n = loop.elements();
      return make_kernel([=](const KernelIo& io) {
        const float* x = io.in<float>(0);
        float* y = io.out<float>(0);
        for_elements(n, kGrain,
                     [=](int64_t begin, int64_t end) { function(x + begin, y + begin, end - begin, {}); });
      });
    }
  }
  if (!all_f32(graph, node)) return nullptr;
  return make_scalar<float, float>(
      std::move(loop), [](float a, float b) { return std::pow(a, b); }, kGrain / 16);
}

// Overflow wraps around; x / 0 is 0.
template <typename T>
KernelPtr make_integer(StridedLoop loop, OpKind op) {
  using U = std::make_unsigned_t<T>;
  const auto u = [](T x) { return static_cast<U>(x); };
  switch (op) {
    case OpKind::kAdd:
      return make_scalar<T, T>(std::move(loop), [u](T a, T b) { return static_cast<T>(u(a) + u(b)); });
    case OpKind::kSub:
      return make_scalar<T, T>(std::move(loop), [u](T a, T b) { return static_cast<T>(u(a) - u(b)); });
    case OpKind::kMul:
      return make_scalar<T, T>(std::move(loop), [u](T a, T b) { return static_cast<T>(u(a) * u(b)); });
    case OpKind::kDiv:
      return make_scalar<T, T>(std::move(loop), [u](T a, T b) {
        return b == 0 ? T(0) : b == -1 ? static_cast<T>(U(0) - u(a)) : static_cast<T>(a / b);
      });
    case OpKind::kMin:
      return make_scalar<T, T>(std::move(loop), [](T a, T b) { return b < a ? b : a; });
    case OpKind::kMax:
      return make_scalar<T, T>(std::move(loop), [](T a, T b) { return b > a ? b : a; });
    default:
      return nullptr;
  }
}

template <typename T>
KernelPtr make_comparison(StridedLoop loop, OpKind op) {
  switch (op) {
    case OpKind::kEqual:
      return make_scalar<T, uint8_t>(std::move(loop), [](T a, T b) { return a == b; });
    case OpKind::kLess:
      return make_scalar<T, uint8_t>(std::move(loop), [](T a, T b) { return a < b; });
    case OpKind::kLessOrEqual:
      return make_scalar<T, uint8_t>(std::move(loop), [](T a, T b) { return a <= b; });
    case OpKind::kGreater:
      return make_scalar<T, uint8_t>(std::move(loop), [](T a, T b) { return a > b; });
    case OpKind::kGreaterOrEqual:
      return make_scalar<T, uint8_t>(std::move(loop), [](T a, T b) { return a >= b; });
    default:
      return nullptr;
  }
}

KernelPtr make_logic(StridedLoop loop, OpKind op) {
  using B = uint8_t;
  switch (op) {
    case OpKind::kAnd:
      return make_scalar<B, B>(std::move(loop), [](B a, B b) { return B(a != 0 && b != 0); });
    case OpKind::kOr:
      return make_scalar<B, B>(std::move(loop), [](B a, B b) { return B(a != 0 || b != 0); });
    case OpKind::kXor:
      return make_scalar<B, B>(std::move(loop), [](B a, B b) { return B((a != 0) != (b != 0)); });
    case OpKind::kEqual:
      return make_scalar<B, B>(std::move(loop), [](B a, B b) { return B((a != 0) == (b != 0)); });
    default:
      return nullptr;
  }
}

template <typename T>
KernelPtr make_choice(StridedLoop loop) {
  return make_kernel([loop = std::move(loop)](const KernelIo& io) {
    const uint8_t* condition = io.in<uint8_t>(0);
    const T *a = io.in<T>(1), *b = io.in<T>(2);
    T* y = io.out<T>(0);
    const int64_t c_col = loop.col_stride(0), a_col = loop.col_stride(1), b_col = loop.col_stride(2);
    loop.run(kGrain, [&](const LoopPart& part) {
      for (int64_t r = 0; r < part.rows; ++r) {
        const uint8_t* pc = condition + part.in[0] + r * loop.row_stride(0);
        const T* pa = a + part.in[1] + r * loop.row_stride(1);
        const T* pb = b + part.in[2] + r * loop.row_stride(2);
        T* py = y + part.out + r * part.cols;
        for (int64_t i = 0; i < part.cols; ++i) {
          const T va = pa[i * a_col], vb = pb[i * b_col];
          py[i] = pc[i * c_col] != 0 ? va : vb;
        }
      }
    });
  });
}

}  // namespace

KernelPtr make_binary(const Graph& graph, const Node& node) {
  const TensorType &a = input_type(graph, node, 0), &b = input_type(graph, node, 1);
  const TensorType& y = output_type(graph, node);
  StridedLoop loop = StridedLoop::broadcast(y.shape, {a.shape, b.shape});
  if (node.op == OpKind::kPow) {
    return a.dtype == DType::kF32 && y.dtype == DType::kF32 ? make_pow(graph, node, std::move(loop))
                                                            : nullptr;
  }
  if (a.dtype != b.dtype) return nullptr;
  const bool arithmetic = y.dtype != DType::kBool;
  switch (a.dtype) {
    case DType::kF32: {
      if (!arithmetic) return make_comparison<float>(std::move(loop), node.op);
      const auto op = vector_function(node.op);
      return op ? make_simd(std::move(loop), *op) : nullptr;
    }
    case DType::kI64:
      return arithmetic ? make_integer<int64_t>(std::move(loop), node.op)
                        : make_comparison<int64_t>(std::move(loop), node.op);
    case DType::kI32:
      return arithmetic ? make_integer<int32_t>(std::move(loop), node.op)
                        : make_comparison<int32_t>(std::move(loop), node.op);
    case DType::kBool:
      return arithmetic ? nullptr : make_logic(std::move(loop), node.op);
    default:
      return nullptr;
  }
}

KernelPtr make_where(const Graph& graph, const Node& node) {
  const TensorType& y = output_type(graph, node);
  if (input_type(graph, node, 1).dtype != y.dtype || input_type(graph, node, 2).dtype != y.dtype)
    return nullptr;
  StridedLoop loop = StridedLoop::broadcast(
      y.shape,
      {input_type(graph, node, 0).shape, input_type(graph, node, 1).shape, input_type(graph, node, 2).shape});
  switch (dtype_size(y.dtype)) {
    case 1:
      return make_choice<uint8_t>(std::move(loop));
    case 2:
      return make_choice<uint16_t>(std::move(loop));
    case 4:
      return make_choice<uint32_t>(std::move(loop));
    case 8:
      return make_choice<uint64_t>(std::move(loop));
    default:
      return nullptr;
  }
}

}  // namespace limber::own
