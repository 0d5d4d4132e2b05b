// Small questions that the rules of several passes ask.
#pragma once

#include <optional>

#include "passes/rewriter.h"

namespace limber {

// The number in a constant of one element, whatever its rank.
std::optional<double> scalar_constant(const Graph& graph, ValueId v);
// Equal up to the rounding of a constant that went through f32.
bool close(double a, double b);
bool is_constant_close_to(const Graph& graph, ValueId v, double expected);
// A constant of rank 0.
Result<ValueId> add_scalar(Rewriter& r, DType dtype, double value, std::string_view name);

// The other operand of a binary node, given one of them; kNoValue when `v` is neither.
ValueId other_operand(const Rewriter& r, NodeId binary, ValueId v);

// x * factor, written as Mul or Div by a scalar constant, where x has the type of the product.
struct Scaled {
  ValueId x;
  double factor;
};
std::optional<Scaled> as_scaled(const Rewriter& r, ValueId v);
// x + term, the same way. Only Add.
struct Shifted {
  ValueId x;
  double term;
};
std::optional<Shifted> as_shifted(const Rewriter& r, ValueId v);

// v without its leading axes of size 1, down to `rank` axes, when that is possible. REQUIRES: v is static
std::optional<Shape> without_leading_ones(const Shape& shape, int rank);

}  // namespace limber
