// Derivatives of the activations that fuse, from their argument or from their result.
#include <cmath>
#include <numbers>

#include "backend/ref/element.h"
#include "backend/ref/factory.h"
#include "ops/op_def.h"

namespace limber::ref {
namespace {

using Derivative = double (*)(double x, double alpha, double beta);

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double gelu_slope(double x, double, double) {
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
  return 0.5 * (1.0 + std::erf(x / std::numbers::sqrt2)) + x * density;
}

double tanh_gelu_slope(double x, double, double) {
  const double factor = std::sqrt(2.0 / std::numbers::pi);
  const double t = std::tanh(factor * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * factor * (1.0 + 3 * 0.044715 * x * x);
}

double mish_slope(double x, double, double) {
  const double softplus = (x > 0 ? x : 0.0) + std::log1p(std::exp(-std::fabs(x)));
  const double t = std::tanh(softplus);
  return t + x * (1.0 - t * t) * logistic(x);
}

// At a kink the slope is that of the flat or lower side.
Derivative slope_at_argument(const Activation& activation) {
  switch (activation.op) {
    case OpKind::kRelu:
      return [](double x, double, double) { return x > 0 ? 1.0 : 0.0; };
    case OpKind::kLeakyRelu:
      return [](double x, double alpha, double) { return x > 0 ? 1.0 : alpha; };
    case OpKind::kClip:
      return [](double x, double low, double high) { return x > low && x < high ? 1.0 : 0.0; };
    case OpKind::kSigmoid:
      return [](double x, double, double) { return logistic(x) * (1.0 - logistic(x)); };
    case OpKind::kTanh:
      return [](double x, double, double) { return 1.0 - std::tanh(x) * std::tanh(x); };
    case OpKind::kHardSigmoid:
      return [](double x, double alpha, double beta) {
        return alpha * x + beta > 0 && alpha * x + beta < 1 ? alpha : 0.0;
      };
    case OpKind::kHardSwish:
      return [](double x, double, double) { return x <= -3 ? 0.0 : x >= 3 ? 1.0 : x / 3.0 + 0.5; };
    case OpKind::kSilu:
      return [](double x, double, double) { return logistic(x) * (1.0 + x * (1.0 - logistic(x))); };
    case OpKind::kGelu:
      return activation.tanh_gelu ? &tanh_gelu_slope : &gelu_slope;
    case OpKind::kElu:
      return [](double x, double alpha, double) { return x > 0 ? 1.0 : alpha * std::exp(x); };
    case OpKind::kMish:
      return &mish_slope;
    case OpKind::kSoftplus:
      return [](double x, double, double) { return logistic(x); };
    default:
      LIMBER_UNREACHABLE();
  }
}

Derivative slope_at_result(const Activation& activation) {
  switch (activation.op) {
    case OpKind::kSigmoid:
      return [](double y, double, double) { return y * (1.0 - y); };
    case OpKind::kTanh:
      return [](double y, double, double) { return 1.0 - y * y; };
    case OpKind::kHardSigmoid:
      return [](double y, double alpha, double) { return y > 0 && y < 1 ? alpha : 0.0; };
    case OpKind::kElu:
      return [](double y, double alpha, double) { return y > 0 ? 1.0 : y + alpha; };
    case OpKind::kSoftplus:
      return [](double y, double, double) { return -std::expm1(-y); };
    default:
      return slope_at_argument(activation);  // Relu, LeakyRelu, Clip: the same comparison
  }
}

KernelResult make_activation_backward(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const Activation act = fused_activation(v.attrs());
  const Derivative slope = v.attrs().i("from_output", 0) != 0 ? slope_at_result(act) : slope_at_argument(act);
  const auto elem = access<double>(v.in(0).dtype);
  const int64_t count = v.in(0).shape.elements();
  return make_kernel([=](const KernelIo& io) {
    for (int64_t i = 0; i < count; ++i) {
      const double x = elem.load(io.inputs[1], i);
      elem.store(io.outputs[0], i, elem.load(io.inputs[0], i) * slope(x, act.alpha, act.beta));
    }
  });
}

}  // namespace

LIMBER_REF_KERNEL(ActivationBackward, make_activation_backward(v))

}  // namespace limber::ref
