// Operators that compute or change shapes, and constants made from shapes.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "io/importer.h"

namespace limber::onnx_io {
namespace {

// The dimension that makes the element counts of `from` and `to` (without the open one) equal. Equal
// dimensions cancel first, so that several symbols are no obstacle.
std::optional<Dim> open_dim(const Shape& from, const std::vector<Dim>& to) {
  std::vector<Dim> above(from.begin(), from.end());
  Dim below(1);
  for (const Dim& d : to) {
    const auto it = std::find(above.begin(), above.end(), d);
    if (it != above.end() && d != Dim(0)) {
      above.erase(it);
      continue;
    }
    const auto next = mul(below, d);
    if (!next) return std::nullopt;
    below = *next;
  }
  std::optional<Dim> total = Dim(1);
  for (const Dim& d : above) {
    total = mul(*total, d);
    if (!total) return std::nullopt;
  }
  return div_exact(*total, below);
}

Result<Shape> reshape_target(NodeContext& c, std::vector<Dim> target, bool allow_zero) {
  const Shape& from = c.type(0).shape;
  const auto minus_one = std::count(target.begin(), target.end(), Dim(-1));
  if (minus_one > 1) return corrupt("shape has more than one -1");
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] == Dim(0) && !allow_zero) {
      if (static_cast<int>(i) >= from.rank())
        return corrupt("shape has 0 at {}, where the input has no axis", i);
      target[i] = from[static_cast<int>(i)];
    }
  }
  if (minus_one == 1) {
    const auto at = std::find(target.begin(), target.end(), Dim(-1));
    std::vector<Dim> others(target.begin(), at);
    others.insert(others.end(), at + 1, target.end());
    const auto open = open_dim(from, others);
    if (!open) {
      return unsupported("cannot tell the dimension -1 when {} is reshaped to [{}]", c.type(0).to_string(),
                         Shape(target).to_string());
    }
    *at = *open;
  }
  return Shape(std::move(target));
}

Status reshape(NodeContext& c) {
  std::vector<Dim> target;
  if (c.version < 5) {
    const auto dims = c.ints("shape");
    target.assign(dims.begin(), dims.end());
  } else {
    if (!c.has(1)) return corrupt("input 1 (shape) is missing");
    LIMBER_ASSIGN(target, c.dims(1, "the shape"));
  }
  LIMBER_ASSIGN(Shape shape, reshape_target(c, std::move(target), c.i("allowzero", 0) != 0));
  LIMBER_ASSIGN(const ValueId y, c.emit(OpKind::kReshape, {c.in(0)}, {{"shape", std::move(shape)}}));
  c.set(0, y);
  return {};
}

Status flatten(NodeContext& c) {
  const Shape& x = c.type(0).shape;
  const int64_t given = c.i("axis", 1);
  if (given < -x.rank() || given > x.rank())
    return corrupt("axis {} is outside a tensor of rank {}", given, x.rank());
  const int axis = static_cast<int>(given < 0 ? given + x.rank() : given);
  const auto rows = product(x, 0, axis), columns = product(x, axis, x.rank());
  if (!rows || !columns) return unsupported("flattening several symbolic dimensions of {}", x.to_string());
  LIMBER_ASSIGN(const ValueId y, c.reshape(c.in(0), Shape{*rows, *columns}));
  c.set(0, y);
  return {};
}

Status squeeze(NodeContext& c) {
  const Shape& x = c.type(0).shape;
  LIMBER_ASSIGN(const auto given, c.ints("axes", 1));
  std::vector<int64_t> axes;
  if (given) {
    LIMBER_ASSIGN(axes, normal_axes(*given, x.rank()));
  } else {
    for (int i = 0; i < x.rank(); ++i) {
      if (x[i] == Dim(1)) axes.push_back(i);
    }
  }
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), i)) {
      shape.push_back(x[i]);
    } else if (x[i].is_constant() && x[i] != Dim(1)) {
      return corrupt("axis {} of {} is not 1", i, c.type(0).to_string());
    } else if (x[i] != Dim(1)) {
      LIMBER_TRY(c.constant_dim(x[i], "a squeezed dimension").status());
    }
  }
  LIMBER_ASSIGN(const ValueId y, c.reshape(c.in(0), shape));
  c.set(0, y);
  return {};
}

Status unsqueeze(NodeContext& c) {
  const Shape& x = c.type(0).shape;
  LIMBER_ASSIGN(const auto given, c.ints("axes", 1));
  if (!given) return corrupt("it has no axes");
  if (given->size() > kMaxRank) return corrupt("{} axes", given->size());
  const int rank = x.rank() + static_cast<int>(given->size());
  LIMBER_ASSIGN(const auto axes, normal_axes(*given, rank));
  Shape shape;
  for (int i = 0, from = 0; i < rank; ++i) {
    shape.push_back(std::binary_search(axes.begin(), axes.end(), i) ? Dim(1) : x[from++]);
  }
  LIMBER_ASSIGN(const ValueId y, c.reshape(c.in(0), shape));
  c.set(0, y);
  return {};
}

Status transpose(NodeContext& c) {
  std::vector<int64_t> perm = c.ints("perm");
  if (perm.empty()) {
    perm.resize(static_cast<size_t>(c.rank(0)));
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  const Binding* input = c.binding(0);
  if (input->row_major) {
    if (perm != std::vector<int64_t>{1, 0}) return unsupported("only the plain transpose of NonZero");
    c.set(0, input->id, input->rows);
    return {};
  }
  LIMBER_ASSIGN(perm, [&]() -> Result<std::vector<int64_t>> {
    for (int64_t& axis : perm) {
      LIMBER_ASSIGN(axis, normal_axis(axis, c.rank(0)));
    }
    return perm;
  }());
  return c.lower(OpKind::kTranspose, {input->id}, {{"perm", perm}});
}

Status expand(NodeContext& c) {
  LIMBER_ASSIGN(auto dims, c.dims(1, "the shape"));
  const Shape target(std::move(dims));
  const auto shape = broadcast(c.type(0).shape, target);
  if (!shape) {
    return corrupt("{} does not broadcast to [{}]", c.type(0).to_string(), target.to_string());
  }
  LIMBER_ASSIGN(const ValueId y, c.emit(OpKind::kExpand, {c.in(0)}, {{"shape", *shape}}));
  c.set(0, y);
  return {};
}

// --- what shapes are ------------------------------------------------------------------------------------

Status shape_of(NodeContext& c) {
  const int64_t rank = c.rank(0);
  const auto clamped = [&](const char* name, int64_t fallback) {
    const int64_t given = c.i(name, fallback);
    return std::clamp<int64_t>(given < 0 ? given + rank : given, 0, rank);
  };
  const int64_t start = clamped("start", 0), end = std::max(start, clamped("end", rank));
  LIMBER_ASSIGN(ValueId y, c.emit(OpKind::kShapeOf, {c.in(0)}));
  if (start != 0 || end != rank) {
    const Attrs attrs{{"axes", std::vector<int64_t>{0}},
                      {"starts", std::vector<int64_t>{start}},
                      {"ends", std::vector<int64_t>{end}},
                      {"steps", std::vector<int64_t>{1}}};
    LIMBER_ASSIGN(y, c.emit(OpKind::kSlice, {y}, attrs));
  }
  c.set(0, y);
  return {};
}

Status size(NodeContext& c) {
  LIMBER_ASSIGN(const ValueId shape, c.emit(OpKind::kShapeOf, {c.in(0)}));
  const Attrs attrs{{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{0}}};
  LIMBER_ASSIGN(const ValueId y, c.emit(OpKind::kReduceProd, {shape}, attrs));
  c.set(0, y);
  return {};
}

Status constant_of_shape(NodeContext& c) {
  LIMBER_ASSIGN(auto value, c.tensor("value"));
  if (value && value->elements() != 1)
    return corrupt("value has {} elements, expected one", value->elements());
  const Tensor element = value ? value->reshaped(Shape{}) : Tensor::scalar(0.0f);
  LIMBER_ASSIGN(auto dims, c.dims(0, "the shape"));
  for (const Dim& d : dims) {
    if (d.is_constant() && d.value() < 0) return corrupt("dimension {} in the shape", d.value());
  }
  LIMBER_ASSIGN(const ValueId y,
                c.emit(OpKind::kExpand, {c.constant(element)}, {{"shape", Shape(std::move(dims))}}));
  c.set(0, y);
  return {};
}

Status constant(NodeContext& c) {
  LIMBER_ASSIGN(auto value, c.tensor("value"));
  if (value) {
    c.set(0, c.constant(*value));
    return {};
  }
  const auto from = [&](auto values, Shape shape) {
    c.set(0, c.constant(Tensor::from(std::span<const typename decltype(values)::value_type>(values),
                                     std::move(shape))));
    return Status();
  };
  if (c.has_attr("value_float"))
    return from(std::vector<float>{static_cast<float>(c.f("value_float", 0))}, {});
  if (c.has_attr("value_int")) return from(std::vector<int64_t>{c.i("value_int", 0)}, {});
  if (c.has_attr("value_floats")) {
    const auto values = c.floats("value_floats");
    return from(std::vector<float>(values.begin(), values.end()), Shape{static_cast<int64_t>(values.size())});
  }
  if (c.has_attr("value_ints")) {
    const auto values = c.ints("value_ints");
    return from(values, Shape{static_cast<int64_t>(values.size())});
  }
  for (const char* name : {"sparse_value", "value_string", "value_strings"}) {
    if (c.has_attr(name)) return unsupported("a constant given as {}", name);
  }
  return corrupt("it has no value");
}

// --- Range ----------------------------------------------------------------------------------------------

// 0, 1, 2 ... for a symbolic number of elements: an exclusive running sum of ones.
Result<ValueId> symbolic_range(NodeContext& c, const Dim& start, const Dim& limit, const Dim& delta) {
  const auto span = sub(limit, start);
  const auto count = span ? div_exact(*span, delta) : std::nullopt;
  if (!count || !start.is_constant() || !delta.is_constant()) {
    return unsupported("the length of the range from {} to {} by {} must be known at compile time; {}",
                       start.to_string(), limit.to_string(), delta.to_string(), c.why_unknown(1));
  }
  const DType dtype = c.type(0).dtype;
  LIMBER_ASSIGN(ValueId y, c.emit(OpKind::kExpand, {c.scalar(1, dtype)}, {{"shape", Shape{*count}}}));
  LIMBER_ASSIGN(y, c.emit(OpKind::kCumSum, {y}, {{"axis", int64_t{0}}, {"exclusive", int64_t{1}}}));
  if (delta != Dim(1)) {
    LIMBER_ASSIGN(y, c.emit(OpKind::kMul, {y, c.in(2)}));
  }
  if (start != Dim(0)) {
    LIMBER_ASSIGN(y, c.emit(OpKind::kAdd, {y, c.in(0)}));
  }
  return y;
}

template <typename T>
Status range_of(NodeContext& c, int64_t count, double start, double delta) {
  LIMBER_TRY(c.spend(static_cast<size_t>(count) * sizeof(T)));
  LIMBER_ASSIGN(Tensor tensor, Tensor::allocate({DTypeOf<T>::value, Shape{count}}));
  double x = start;
  for (int64_t i = 0; i < count; ++i) {
    tensor.data<T>()[static_cast<size_t>(i)] = static_cast<T>(x);
    x = start + static_cast<double>(i + 1) * delta;
  }
  c.set(0, c.constant(std::move(tensor)));
  return {};
}

Result<double> range_number(NodeContext& c, int input, const char* what) {
  LIMBER_ASSIGN(const auto values, c.floats(input, what));
  // Beyond this doubles do not hold every integer.
  if (!(std::abs(values[0]) <= 0x1p53)) return corrupt("{} is {}", what, values[0]);
  return values[0];
}

Status constant_range(NodeContext& c) {
  LIMBER_ASSIGN(const double start, range_number(c, 0, "start"));
  LIMBER_ASSIGN(const double limit, range_number(c, 1, "limit"));
  LIMBER_ASSIGN(const double delta, range_number(c, 2, "delta"));
  if (delta == 0) return corrupt("delta is 0");
  const double wanted = std::max(std::ceil((limit - start) / delta), 0.0);
  if (wanted > static_cast<double>(kMaxConstantElements)) {
    return error(Code::kResourceExhausted, "a range of {} elements", wanted);
  }
  const auto count = static_cast<int64_t>(wanted);
  switch (c.type(0).dtype) {
    case DType::kF32:
      return range_of<float>(c, count, start, delta);
    case DType::kF64:
      return range_of<double>(c, count, start, delta);
    case DType::kI16:
      return range_of<int16_t>(c, count, start, delta);
    case DType::kI32:
      return range_of<int32_t>(c, count, start, delta);
    case DType::kI64:
      return range_of<int64_t>(c, count, start, delta);
    default:
      return unsupported("a range of {}", dtype_name(c.type(0).dtype));
  }
}

Status range(NodeContext& c) {
  LIMBER_ASSIGN(const StaticValue* a, c.require(0, "start"));
  LIMBER_ASSIGN(const StaticValue* b, c.require(1, "limit"));
  LIMBER_ASSIGN(const StaticValue* d, c.require(2, "delta"));
  if (a->elements.size() != 1 || b->elements.size() != 1 || d->elements.size() != 1) {
    return corrupt("its inputs are no scalars");
  }
  if (a->dtype != b->dtype || a->dtype != d->dtype) return corrupt("its inputs have different types");
  if (a->is_constant() && b->is_constant() && d->is_constant()) return constant_range(c);
  const auto dim = [](const StaticValue* v) { return std::get_if<Dim>(&v->elements[0]); };
  if (!dim(a) || !dim(b) || !dim(d)) return unsupported("a symbolic range of {}", dtype_name(a->dtype));
  LIMBER_ASSIGN(const ValueId y, symbolic_range(c, *dim(a), *dim(b), *dim(d)));
  c.set(0, y);
  return {};
}

Status eye_like(NodeContext& c) {
  DType dtype = c.type(0).dtype;
  if (c.has_attr("dtype")) {
    const auto given = dtype_from_onnx(c.i("dtype", 0));
    if (!given) return unsupported("elements of this dtype");
    dtype = *given;
  }
  return c.lower(OpKind::kEyeLike, {c.in(0)}, {{"k", c.i("k", 0)}, {"to", std::string(dtype_name(dtype))}});
}

constexpr auto kShapeTable = std::to_array<Converter>({
    {"Constant", 0, 0, 1, 1, kAny, constant},
    {"ConstantOfShape", 1, 1, 1, 9, kAny, constant_of_shape},
    {"Expand", 2, 2, 1, 8, kAny, expand},
    {"EyeLike", 1, 1, 1, 9, kAny, eye_like},
    {"Flatten", 1, 1, 1, 1, kAny, flatten},
    {"Range", 3, 3, 1, 11, kAny, range},
    {"Reshape", 1, 2, 1, 1, kAny, reshape},
    {"Shape", 1, 1, 1, 1, kAny, shape_of},
    {"Size", 1, 1, 1, 1, kAny, size},
    {"Squeeze", 1, 2, 1, 1, kAny, squeeze},
    {"Transpose", 1, 1, 1, 1, kAny, transpose},
    {"Unsqueeze", 1, 2, 1, 1, kAny, unsqueeze},
});

}  // namespace

std::span<const Converter> shape_converters() { return kShapeTable; }

}  // namespace limber::onnx_io
