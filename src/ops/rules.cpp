#include "ops/rules.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace limber::rules {
namespace {

Status wrong_dtype(const TensorType& type, std::string_view what, std::string_view expected) {
  return invalid("{} has type {}, expected {}", what, type.to_string(), expected);
}

// The elements of a shape as a polynomial: constant * product of primitive factors aS+b, sorted.
struct Count {
  std::optional<int64_t> constant = 1;  // nullopt: overflow
  std::vector<Dim> factors;
};

bool before(const Dim& a, const Dim& b) {
  if (a.symbol() != b.symbol()) return a.symbol() < b.symbol();
  if (a.scale() != b.scale()) return a.scale() < b.scale();
  return a.offset() < b.offset();
}

Count count_of(const Shape& shape) {
  Count count;
  for (const Dim& d : shape) {
    const int64_t content = d.is_constant() ? d.value() : std::gcd(d.scale(), d.offset());
    if (!d.is_constant()) count.factors.emplace_back(d.symbol(), d.scale() / content, d.offset() / content);
    int64_t product = 0;
    if (count.constant && !__builtin_mul_overflow(*count.constant, content, &product)) {
      count.constant = product;
    } else {
      count.constant = std::nullopt;
    }
  }
  std::sort(count.factors.begin(), count.factors.end(), before);
  return count;
}

}  // namespace

Status need_any(const TensorType&, std::string_view) { return {}; }
Status need_float(const TensorType& type, std::string_view what) {
  return is_float(type.dtype) ? Status() : wrong_dtype(type, what, "a floating-point type");
}
Status need_numeric(const TensorType& type, std::string_view what) {
  return type.dtype != DType::kBool ? Status() : wrong_dtype(type, what, "a numeric type");
}
Status need_signed(const TensorType& type, std::string_view what) {
  return is_signed(type.dtype) ? Status() : wrong_dtype(type, what, "a signed numeric type");
}
Status need_integer(const TensorType& type, std::string_view what) {
  return is_integer(type.dtype) ? Status() : wrong_dtype(type, what, "an integer type");
}
Status need_bool(const TensorType& type, std::string_view what) {
  return type.dtype == DType::kBool ? Status() : wrong_dtype(type, what, "bool");
}
Status need_index(const TensorType& type, std::string_view what) {
  const bool ok = type.dtype == DType::kI32 || type.dtype == DType::kI64;
  return ok ? Status() : wrong_dtype(type, what, "i32 or i64");
}

Status need_rank(const TensorType& type, int min, int max, std::string_view what) {
  if (type.rank() >= min && type.rank() <= max) return {};
  if (min == max) return invalid("{} has type {}, expected rank {}", what, type.to_string(), min);
  return invalid("{} has type {}, expected rank {} to {}", what, type.to_string(), min, max);
}

Status need_shape(const TensorType& type, const Shape& expected, std::string_view what) {
  bool same = type.rank() == expected.rank();
  for (int i = 0; same && i < expected.rank(); ++i) same = may_equal(type.shape[i], expected[i]);
  if (same) return {};
  return invalid("{} has type {}, expected shape [{}]", what, type.to_string(), expected.to_string());
}

Status need_same_dtype(const InferArgs& args, int first) {
  for (int i = first; i < static_cast<int>(args.inputs.size()); ++i) {
    if (!args.has(i) || args.input(i).dtype == args.input(0).dtype) continue;
    return invalid("input {} has type {}, expected the dtype of input 0, {}", i, args.input(i).to_string(),
                   dtype_name(args.input(0).dtype));
  }
  return {};
}

Status need_vector(const InferArgs& args, int i, const Dim& length, std::string_view what) {
  return args.has(i) ? need_shape(args.input(i), Shape{length}, what) : Status();
}

Status need_broadcast_to(const TensorType& type, const Shape& shape, std::string_view what) {
  const auto joined = broadcast(type.shape, shape);
  if (joined && *joined == shape) return {};
  return invalid("{} has type {}, which does not broadcast to [{}]", what, type.to_string(),
                 shape.to_string());
}

Result<int64_t> int_attr(const InferArgs& args, std::string_view name, std::optional<int64_t> fallback,
                         int64_t low, int64_t high) {
  const int64_t value = fallback ? args.attrs.i(name, *fallback) : args.attrs.i(name);
  if (value < low || value > high) {
    return invalid("attribute '{}' is {}, expected a value from {} to {}", name, value, low, high);
  }
  return value;
}

Result<bool> flag_attr(const InferArgs& args, std::string_view name, std::optional<bool> fallback) {
  LIMBER_ASSIGN(const int64_t value, int_attr(args, name, fallback, 0, 1));
  return value == 1;
}

Result<int> axis_attr(const InferArgs& args, std::string_view name, int rank) {
  const int64_t axis = args.attrs.i(name);
  if (axis < 0 || axis >= rank) {
    return invalid("attribute '{}' is {}, expected an axis in [0, {})", name, axis, rank);
  }
  return static_cast<int>(axis);
}

Status check_ints(const InferArgs& args, std::string_view name, int count, int64_t low, int64_t high) {
  const auto& values = args.attrs.ints(name);
  if (values.size() != static_cast<size_t>(count)) {
    return invalid("attribute '{}' has {} values, expected {}", name, values.size(), count);
  }
  for (int64_t v : values) {
    if (v < low || v > high) {
      return invalid("attribute '{}' holds {}, expected values from {} to {}", name, v, low, high);
    }
  }
  return {};
}

Result<std::string> choice_attr(const InferArgs& args, std::string_view name, std::string_view fallback,
                                std::initializer_list<std::string_view> allowed) {
  std::string value = args.attrs.s(name, fallback);
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return value;
  std::string list;
  for (std::string_view choice : allowed) list += fmt::format("{}'{}'", list.empty() ? "" : ", ", choice);
  return invalid("attribute '{}' is '{}', expected one of {}", name, value, list);
}

Result<DType> dtype_attr(const InferArgs& args, std::string_view name) {
  const std::string& text = args.attrs.s(name);
  const auto dtype = parse_dtype(text);
  if (!dtype)
    return invalid("attribute '{}' is '{}', expected the name of a dtype such as 'f32'", name, text);
  return *dtype;
}

Status check_finite(const InferArgs& args, std::string_view name) {
  const double value = args.attrs.f(name, 0.0);
  return std::isfinite(value) ? Status()
                              : invalid("attribute '{}' is {}, expected a finite number", name, value);
}

bool may_equal(const Dim& a, const Dim& b) {
  if (a == b) return true;
  if (a.is_constant() && b.is_constant()) return false;
  const auto difference = sub(a, b);
  if (!difference) return true;  // two symbols
  if (difference->is_constant()) return false;
  // scale * S + offset == 0 needs an S >= 1.
  const int64_t scale = difference->scale(), offset = difference->offset();
  return offset % scale == 0 && (offset < 0) != (scale < 0) && offset != 0;
}

std::optional<Dim> unify(const Dim& a, const Dim& b) {
  if (a == b) return a;
  if (!may_equal(a, b)) return std::nullopt;
  if (a.is_constant()) return a;
  if (b.is_constant()) return b;
  return std::nullopt;
}

Result<Dim> expressible(const std::optional<Dim>& dim, std::string_view what) {
  if (dim) return *dim;
  return unsupported(
      "{} cannot be expressed as a multiple of one symbol plus a number; give its symbols numbers (bind) "
      "first",
      what);
}

bool may_have_same_elements(const Shape& a, const Shape& b) {
  Count left = count_of(a), right = count_of(b);
  if (!left.constant || !right.constant) return true;
  std::vector<Dim> only_left, only_right;
  std::set_difference(left.factors.begin(), left.factors.end(), right.factors.begin(), right.factors.end(),
                      std::back_inserter(only_left), before);
  std::set_difference(right.factors.begin(), right.factors.end(), left.factors.begin(), left.factors.end(),
                      std::back_inserter(only_right), before);
  if (only_left.empty() && only_right.empty()) return *left.constant == *right.constant;
  if (!only_left.empty() && !only_right.empty()) return true;
  // constant == multiple * unknown factors
  const int64_t constant = only_left.empty() ? *left.constant : *right.constant;
  const int64_t multiple = only_left.empty() ? *right.constant : *left.constant;
  return multiple == 0 ? constant == 0 : constant % multiple == 0;
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

double elements(const Graph& graph, ValueId value) {
  if (value == kNoValue) return 0;
  double count = 1;
  for (const Dim& d : graph.type(value).shape) count *= static_cast<double>(d.value());
  return count;
}

double no_flops(const Graph&, const Node&) { return 0; }
double flops_of_outputs(const Graph& graph, const Node& node) { return elements(graph, node.outputs[0]); }
double flops_of_inputs(const Graph& graph, const Node& node) { return elements(graph, node.inputs[0]); }

}  // namespace limber::rules
