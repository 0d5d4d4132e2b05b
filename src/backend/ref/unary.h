// Element-wise functions of one number, also used as fused activations.
#pragma once

#include "ir/attrs.h"
#include "ops/op_def.h"

namespace limber::ref {

// What the functions below are parameterised with; each reads only what its operator has.
struct UnaryParams {
  double a = 0, b = 0;
  bool tanh_gelu = false;
};

struct Unary {
  double (*fn)(double x, const UnaryParams& params) = nullptr;  // nullptr: not a function on floats
  UnaryParams params;
  double operator()(double x) const { return fn(x, params); }
};

Unary unary_of(OpKind op, const Attrs& attrs);
// REQUIRES: an activation that fuses; kIdentity gives the identity function
Unary unary_of(const Activation& activation);

}  // namespace limber::ref
