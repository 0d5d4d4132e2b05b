// Small tensors whose elements are known while a graph is built, as numbers or as expressions in the
// symbolic dimensions: what shape arithmetic is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "ir/graph.h"

namespace limber {

// Integers and booleans (0, 1) are always a Dim. Floating-point elements are a double, or a Dim while
// they are a converted symbolic integer.
using StaticElement = std::variant<Dim, double>;

// Shapes, axes and scales have a few numbers; what has more is data, and is left to the kernels.
inline constexpr int64_t kMaxStaticElements = 4096;

struct StaticValue {
  DType dtype = DType::kI64;
  std::vector<int64_t> dims;
  std::vector<StaticElement> elements;  // row-major, as many as `dims` say

  const StaticElement* find(int64_t flat) const;  // nullptr outside: an index may come from a file
  bool is_constant() const;                       // no element depends on a symbol
  bool operator==(const StaticValue&) const = default;
};

// nullopt when the tensor has more than kMaxStaticElements or values no Dim can hold (large u64).
std::optional<StaticValue> static_from_tensor(const Tensor& tensor);
StaticValue static_from_dims(std::span<const Dim> dims);  // i64, one axis
Tensor tensor_from_static(const StaticValue& value);      // REQUIRES: is_constant()

// What a node computes, as far as it is known. A symbol stands for any number from 1 up.
// `types` and `values` have one entry per input: nullptr for an absent input, and for a value that is
// not known. `outputs` are the node's output types. nullopt: not computable, or too large.
std::optional<std::vector<StaticValue>> evaluate_static(OpKind op, const Attrs& attrs,
                                                        std::span<const TensorType* const> types,
                                                        std::span<const StaticValue* const> values,
                                                        std::span<const TensorType> outputs);

}  // namespace limber
