// Optimiser steps. Every element is read before it is written, so outputs may share the memory of the
// inputs they replace.
#include <array>
#include <cmath>

#include "backend/ref/element.h"
#include "backend/ref/factory.h"
#include "ops/op_def.h"

namespace limber::ref {
namespace {

// An optional f32[] input.
double scalar(const KernelIo& io, size_t input, double fallback) {
  if (input >= io.inputs.size() || io.inputs[input] == nullptr) return fallback;
  return static_cast<double>(*static_cast<const float*>(io.inputs[input]));
}

// The sums of UpdateEffect.
struct Effect {
  std::array<double, kUpdateEffects> sums{};

  void add(double gradient, double before, double after) {
    sums[kEffectGain] += gradient * (before - after);
    sums[kEffectGradientSquares] += gradient * gradient;
    sums[kEffectWeightSquares] += before * before;
  }
  void store(float* to) const {
    for (size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<float>(sums[i]);
  }
};

// An absent velocity is zero.
KernelResult make_sgd(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const Attrs& attrs = v.attrs();
  const double momentum = attrs.f("momentum", 0), dampening = attrs.f("dampening", 0),
               decay = attrs.f("decay", 0);
  const bool nesterov = attrs.i("nesterov", 0) != 0, decoupled = attrs.i("decoupled", 0) != 0;
  const bool has_velocity = v.has_in(3), wants_w = v.has_out(0), wants_velocity = v.has_out(1),
             wants_effect = v.has_out(2);
  const auto elem = access<double>(v.in(0).dtype);
  const int64_t count = v.in(0).shape.elements();
  return make_kernel([=](const KernelIo& io) {
    const double rate = scalar(io, 2, 0), factor = scalar(io, 4, 1);
    Effect effect;
    for (int64_t i = 0; i < count; ++i) {
      const double w = elem.load(io.inputs[0], i);
      const double gradient = factor * elem.load(io.inputs[1], i);
      const double g = gradient + (decoupled ? 0.0 : decay * w);
      const double old = has_velocity ? elem.load(io.inputs[3], i) : 0.0;
      const double velocity = momentum * old + (1.0 - dampening) * g;
      const double step = nesterov ? g + momentum * velocity : velocity;
      const double shrunk = decoupled ? w - rate * decay * w : w;
      effect.add(gradient, w, shrunk - rate * step);
      if (wants_w) elem.store(io.outputs[0], i, shrunk - rate * step);
      if (wants_velocity) elem.store(io.outputs[1], i, velocity);
    }
    if (wants_effect) effect.store(io.out<float>(2));
  });
}

KernelResult make_adam(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const Attrs& attrs = v.attrs();
  const double beta1 = attrs.f("beta1"), beta2 = attrs.f("beta2"), epsilon = attrs.f("epsilon"),
               decay = attrs.f("decay", 0);
  const bool decoupled = attrs.i("decoupled", 1) != 0;
  const std::array<bool, 5> wants = {v.has_out(0), v.has_out(1), v.has_out(2), v.has_out(3), v.has_out(4)};
  const auto elem = access<double>(v.in(0).dtype);
  const int64_t count = v.in(0).shape.elements();
  return make_kernel([=](const KernelIo& io) {
    const double rate = scalar(io, 2, 0), steps = scalar(io, 5, 0) + 1, factor = scalar(io, 6, 1);
    const double correction1 = 1.0 - std::pow(beta1, steps), correction2 = 1.0 - std::pow(beta2, steps);
    Effect effect;
    for (int64_t i = 0; i < count; ++i) {
      const double w = elem.load(io.inputs[0], i);
      const double gradient = factor * elem.load(io.inputs[1], i);
      const double g = gradient + (decoupled ? 0.0 : decay * w);
      const double m = beta1 * elem.load(io.inputs[3], i) + (1.0 - beta1) * g;
      const double s = beta2 * elem.load(io.inputs[4], i) + (1.0 - beta2) * g * g;
      const double step = m / correction1 / (std::sqrt(s / correction2) + epsilon);
      const double shrunk = decoupled ? w - rate * decay * w : w;
      effect.add(gradient, w, shrunk - rate * step);
      if (wants[0]) elem.store(io.outputs[0], i, shrunk - rate * step);
      if (wants[1]) elem.store(io.outputs[1], i, m);
      if (wants[2]) elem.store(io.outputs[2], i, s);
    }
    if (wants[3]) *io.out<float>(3) = static_cast<float>(steps);
    if (wants[4]) effect.store(io.out<float>(4));
  });
}

}  // namespace

LIMBER_REF_KERNEL(SgdUpdate, make_sgd(v))
LIMBER_REF_KERNEL(AdamUpdate, make_adam(v))

}  // namespace limber::ref
