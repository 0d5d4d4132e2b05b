// y = x * scale + shift with static vectors, as BatchNorm or as element-wise arithmetic writes it.
#pragma once

#include <optional>

#include "passes/rewriter.h"

namespace limber {

// What a node does, recognised without changing anything.
struct AffineNode {
  NodeId node;
  ValueId x;                   // what is scaled and shifted; has the type of the result
  ValueId operand = kNoValue;  // the static operand of Mul, Div, Add, Sub; kNoValue for BatchNorm
};
// nullopt: something else, or an operand is not static.
std::optional<AffineNode> as_affine(const Rewriter& r, NodeId n);

// Along `axis` of a tensor of rank `rank` the operand has `channels` elements or 1, and it has one
// element along every other. BatchNorm is that for axis 1.
bool is_per_channel(const Rewriter& r, const AffineNode& affine, int axis, const Dim& channels);

// The two as vectors of `channels` or 1 elements, kNoValue where there is none.
struct Affine {
  ValueId scale = kNoValue, shift = kNoValue;
};
Result<Affine> emit_affine(Rewriter& r, const AffineNode& affine);

// a * b and a + b, where kNoValue stands for one and for zero.
Result<ValueId> emit_product(Rewriter& r, ValueId a, ValueId b, std::string_view name);
Result<ValueId> emit_sum(Rewriter& r, ValueId a, ValueId b, std::string_view name);
// `v` under another shape of as many elements; `v` itself when it has that shape.
Result<ValueId> emit_reshaped(Rewriter& r, ValueId v, Shape shape, std::string_view name);
// `v` broadcast to `shape`; `v` itself when it has that shape, or is kNoValue.
Result<ValueId> emit_expanded(Rewriter& r, ValueId v, const Shape& shape, std::string_view name);

}  // namespace limber
