// What type rules and costs are made of. Internal to ops/.
// Rules may rely on infer_types: every input type has passed check_type, so its dimensions, scales
// and offsets are below 2^40; attribute values are checked by nobody else.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/definitions.h"

namespace limber::rules {

using Types = std::vector<TensorType>;
using InferFn = Result<Types> (*)(const InferArgs& args);
using FlopsFn = double (*)(const Graph& graph, const Node& node);

// Of one tensor: terabytes, so that products of counts and sizes of elements stay far from overflow.
inline constexpr int64_t kMaxElements = int64_t{1} << 40;
// Above any sensible stride, pad, kernel or dilation; products of two stay far from overflow.
inline constexpr int64_t kMaxExtent = int64_t{1} << 31;

constexpr AttrSpec required(std::string_view name, AttrKind kind) { return {name, kind, true}; }
constexpr AttrSpec optional(std::string_view name, AttrKind kind) { return {name, kind, false}; }

// --- types. `what` names the input in the message ("x", "weights"). ----------------------------------
Status need_any(const TensorType& type, std::string_view what);
Status need_float(const TensorType& type, std::string_view what);
Status need_numeric(const TensorType& type, std::string_view what);  // all but bool
Status need_signed(const TensorType& type, std::string_view what);
Status need_integer(const TensorType& type, std::string_view what);
Status need_bool(const TensorType& type, std::string_view what);
Status need_index(const TensorType& type, std::string_view what);  // i32 or i64
Status need_rank(const TensorType& type, int min, int max, std::string_view what);
Status need_shape(const TensorType& type, const Shape& expected, std::string_view what);
// Every present input from `first` on has the dtype of input 0.
Status need_same_dtype(const InferArgs& args, int first = 1);
// Input i, when present, is 1-D with `length` elements.
Status need_vector(const InferArgs& args, int i, const Dim& length, std::string_view what);
// `type` broadcasts to `shape` without changing it.
Status need_broadcast_to(const TensorType& type, const Shape& shape, std::string_view what);

// --- attributes -----------------------------------------------------------------------------------------
Result<int64_t> int_attr(const InferArgs& args, std::string_view name, std::optional<int64_t> fallback,
                         int64_t low, int64_t high);
Result<bool> flag_attr(const InferArgs& args, std::string_view name, std::optional<bool> fallback = {});
Result<int> axis_attr(const InferArgs& args, std::string_view name, int rank);  // in [0, rank)
Status check_ints(const InferArgs& args, std::string_view name, int count, int64_t low, int64_t high);
Result<std::string> choice_attr(const InferArgs& args, std::string_view name, std::string_view fallback,
                                std::initializer_list<std::string_view> allowed);
Result<DType> dtype_attr(const InferArgs& args, std::string_view name);
Status check_finite(const InferArgs& args, std::string_view name);  // a float attribute, when present
Status check_activation(const Attrs& attrs);
// Its derivative is a function of its result.
bool known_from_output(const Activation& activation);

// --- symbolic dimensions -----------------------------------------------------------------------------------
// False only when no binding makes them equal.
bool may_equal(const Dim& a, const Dim& b);
// What both must be when they are the same dimension: the constant one, if any. nullopt: they differ
// or nothing says which one to believe.
std::optional<Dim> unify(const Dim& a, const Dim& b);
// The value, or kUnsupported saying that `what` cannot be written as a*S+b and S must be bound.
Result<Dim> expressible(const std::optional<Dim>& dim, std::string_view what);
// False only when no binding gives the two shapes the same number of elements.
bool may_have_same_elements(const Shape& a, const Shape& b);
int64_t floor_div(int64_t a, int64_t b);  // REQUIRES: b > 0
int64_t ceil_div(int64_t a, int64_t b);   // REQUIRES: b > 0

// --- cost --------------------------------------------------------------------------------------------------
double elements(const Graph& graph, ValueId value);  // 0 for kNoValue
double no_flops(const Graph& graph, const Node& node);
double flops_of_outputs(const Graph& graph, const Node& node);  // 1 per element of output 0
double flops_of_inputs(const Graph& graph, const Node& node);   // 1 per element of input 0
template <int kPerElement>
double flops_per_element(const Graph& graph, const Node& node) {
  return kPerElement * flops_of_inputs(graph, node);
}

}  // namespace limber::rules
