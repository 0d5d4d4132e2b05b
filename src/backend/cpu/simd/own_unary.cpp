#include <cmath>
#include <limits>
#include <optional>

#include "backend/cpu/simd/own_families.h"

namespace limber::own {
namespace {

std::optional<SimdUnary> vector_function(const Node& node) {
  switch (node.op) {
    case OpKind::kAbs:
      return SimdUnary::kAbs;
    case OpKind::kNeg:
      return SimdUnary::kNeg;
    case OpKind::kSign:
      return SimdUnary::kSign;
    case OpKind::kReciprocal:
      return SimdUnary::kReciprocal;
    case OpKind::kFloor:
      return SimdUnary::kFloor;
    case OpKind::kCeil:
      return SimdUnary::kCeil;
    case OpKind::kRound:
      return SimdUnary::kRound;
    case OpKind::kSqrt:
      return SimdUnary::kSqrt;
    case OpKind::kExp:
      return SimdUnary::kExp;
    case OpKind::kLog:
      return SimdUnary::kLog;
    case OpKind::kErf:
      return SimdUnary::kErf;
    case OpKind::kTanh:
      return SimdUnary::kTanh;
    case OpKind::kRelu:
      return SimdUnary::kRelu;
    case OpKind::kSigmoid:
      return SimdUnary::kSigmoid;
    case OpKind::kSilu:
      return SimdUnary::kSilu;
    case OpKind::kHardSwish:
      return SimdUnary::kHardSwish;
    case OpKind::kMish:
      return SimdUnary::kMish;
    case OpKind::kSoftplus:
      return SimdUnary::kSoftplus;
    case OpKind::kSoftsign:
      return SimdUnary::kSoftsign;
    case OpKind::kGelu:
      return node.attrs.s("approximate", "none") == "tanh" ? SimdUnary::kGeluTanh : SimdUnary::kGelu;
    case OpKind::kLeakyRelu:
      return SimdUnary::kLeakyRelu;
    case OpKind::kElu:
      return SimdUnary::kElu;
    case OpKind::kCelu:
      return SimdUnary::kCelu;
    case OpKind::kSelu:
      return SimdUnary::kSelu;
    case OpKind::kThresholdedRelu:
      return SimdUnary::kThresholdedRelu;
    case OpKind::kHardSigmoid:
      return SimdUnary::kHardSigmoid;
    case OpKind::kShrink:
      return SimdUnary::kShrink;
    case OpKind::kClip:
      return SimdUnary::kClip;
    default:
      return std::nullopt;
  }
}

UnaryParams params_of(const Node& node) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto f = [&](std::string_view name) { return static_cast<float>(node.attrs.f(name)); };
  switch (node.op) {
    case OpKind::kLeakyRelu:
    case OpKind::kElu:
    case OpKind::kCelu:
    case OpKind::kThresholdedRelu:
      return {f("alpha"), 0};
    case OpKind::kSelu:
      return {f("alpha"), f("gamma")};
    case OpKind::kHardSigmoid:
      return {f("alpha"), f("beta")};
    case OpKind::kShrink:
      return {f("lambd"), f("bias")};
    case OpKind::kClip:
      return {static_cast<float>(node.attrs.f("min", -kInf)), static_cast<float>(node.attrs.f("max", kInf))};
    default:
      return {};
  }
}

using ScalarFunction = float (*)(float x);

// Functions rare enough in vision models to be taken from the C library.
ScalarFunction scalar_function(OpKind op) {
  switch (op) {
    case OpKind::kSin:
      return [](float x) { return std::sin(x); };
    case OpKind::kCos:
      return [](float x) { return std::cos(x); };
    case OpKind::kTan:
      return [](float x) { return std::tan(x); };
    case OpKind::kAsin:
      return [](float x) { return std::asin(x); };
    case OpKind::kAcos:
      return [](float x) { return std::acos(x); };
    case OpKind::kAtan:
      return [](float x) { return std::atan(x); };
    case OpKind::kSinh:
      return [](float x) { return std::sinh(x); };
    case OpKind::kCosh:
      return [](float x) { return std::cosh(x); };
    case OpKind::kAsinh:
      return [](float x) { return std::asinh(x); };
    case OpKind::kAcosh:
      return [](float x) { return std::acosh(x); };
    case OpKind::kAtanh:
      return [](float x) { return std::atanh(x); };
    default:
      return nullptr;
  }
}

// Functions that cost about as much as copying: more elements per thread before it pays.
int64_t grain_of(SimdUnary op) {
  switch (op) {
    case SimdUnary::kAbs:
    case SimdUnary::kNeg:
    case SimdUnary::kRelu:
    case SimdUnary::kClip:
    case SimdUnary::kLeakyRelu:
    case SimdUnary::kHardSwish:
    case SimdUnary::kHardSigmoid:
      return kGrain;
    default:
      return kGrain / 2;
  }
}

KernelPtr make_test(const Node& node, int64_t n) {
  const bool infinite = node.op == OpKind::kIsInf;
  const bool negative = node.attrs.i("detect_negative", 1) != 0,
             positive = node.attrs.i("detect_positive", 1) != 0;
  return make_kernel([=](const KernelIo& io) {
    const float* x = io.in<float>(0);
    uint8_t* y = io.out<uint8_t>(0);
    for_elements(n, kGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        y[i] = infinite ? std::isinf(x[i]) && (x[i] < 0 ? negative : positive) : std::isnan(x[i]);
      }
    });
  });
}

KernelPtr make_not(int64_t n) {
  return make_kernel([=](const KernelIo& io) {
    const uint8_t* x = io.in<uint8_t>(0);
    uint8_t* y = io.out<uint8_t>(0);
    for_elements(n, kGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = x[i] == 0;
    });
  });
}

}  // namespace

KernelPtr make_unary(const Graph& graph, const Node& node) {
  const TensorType& type = input_type(graph, node, 0);
  const int64_t n = type.shape.elements();
  if (node.op == OpKind::kNot) return type.dtype == DType::kBool ? make_not(n) : nullptr;
  if (type.dtype != DType::kF32) return nullptr;
  if (node.op == OpKind::kIsNaN || node.op == OpKind::kIsInf) return make_test(node, n);
  if (const auto op = vector_function(node)) {
    const auto function = simd().unary[static_cast<size_t>(*op)];
    const UnaryParams params = params_of(node);
    const int64_t grain = grain_of(*op);
    return make_kernel([=](const KernelIo& io) {
      const float* x = io.in<float>(0);
      float* y = io.out<float>(0);
      for_elements(n, grain,
                   [=](int64_t begin, int64_t end) { function(x + begin, y + begin, end - begin, params); });
    });
  }
  const ScalarFunction function = scalar_function(node.op);
  if (function == nullptr) return nullptr;
  return make_kernel([=](const KernelIo& io) {
    const float* x = io.in<float>(0);
    float* y = io.out<float>(0);
    for_elements(n, kGrain / 16, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = function(x[i]);
    });
  });
}

}  // namespace limber::own
