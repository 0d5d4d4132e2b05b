#include "ops/static_value.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/op_def.h"
#include "ops/static_element.h"

namespace limber {
namespace {

using Elements = std::vector<StaticElement>;
using MaybeElements = std::optional<Elements>;

struct Context {
  OpKind op;
  const Attrs& attrs;
  std::span<const TensorType* const> types;
  std::span<const StaticValue* const> values;
  std::span<const TensorType> outputs;

  const StaticValue& in(size_t i) const { return *values[i]; }
};

int64_t count(std::span<const int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

std::vector<int64_t> strides(std::span<const int64_t> dims) {
  std::vector<int64_t> out(dims.size());
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0; step *= dims[i]) out[i] = step;
  return out;
}

// Calls visit(index) for every index of a tensor of these dimensions, row-major, until it returns false.
template <typename Visit>
bool for_each_index(const std::vector<int64_t>& dims, const Visit& visit) {
  std::vector<int64_t> index(dims.size(), 0);
  for (int64_t n = count(dims); n > 0; --n) {
    if (!visit(index)) return false;
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
  return true;
}

// Collects the elements that `find` points to, one per index; nullopt when it finds none (nullptr) for one.
template <typename Find>
MaybeElements collected(const std::vector<int64_t>& dims, const Find& find) {
  Elements out;
  const bool ok = for_each_index(dims, [&](const std::vector<int64_t>& index) {
    const StaticElement* element = find(index);
    if (element != nullptr) out.push_back(*element);
    return element != nullptr;
  });
  return ok ? MaybeElements(std::move(out)) : std::nullopt;
}

// The flat index in a tensor of dimensions `dims` that broadcasts to where `index` points.
int64_t broadcast_index(const std::vector<int64_t>& dims, const std::vector<int64_t>& index) {
  LIMBER_ASSERT(index.size() >= dims.size());
  const size_t skip = index.size() - dims.size();
  int64_t flat = 0;
  for (size_t i = 0; i < dims.size(); ++i) flat = flat * dims[i] + (dims[i] == 1 ? 0 : index[skip + i]);
  return flat;
}

const StaticElement* broadcast_element(const StaticValue& from, const std::vector<int64_t>& index) {
  return from.find(broadcast_index(from.dims, index));
}

MaybeElements eval_binary(const Context& c, const std::vector<int64_t>& dims) {
  Elements out;
  const bool ok = for_each_index(dims, [&](const std::vector<int64_t>& index) {
    const StaticElement *a = broadcast_element(c.in(0), index), *b = broadcast_element(c.in(1), index);
    const auto y = a && b ? static_binary(c.op, c.attrs, *a, *b) : std::nullopt;
    if (y) out.push_back(*y);
    return y.has_value();
  });
  return ok ? MaybeElements(std::move(out)) : std::nullopt;
}

MaybeElements eval_unary(const Context& c) {
  Elements out;
  for (const StaticElement& e : c.in(0).elements) {
    const auto y = static_unary(c.op, c.attrs, e);
    if (!y) return std::nullopt;
    out.push_back(*y);
  }
  return out;
}

MaybeElements eval_where(const Context& c, const std::vector<int64_t>& dims) {
  return collected(dims, [&](const std::vector<int64_t>& index) -> const StaticElement* {
    const StaticElement* condition = broadcast_element(c.in(0), index);
    const auto flag = condition ? element_int(*condition) : std::nullopt;
    return flag ? broadcast_element(c.in(*flag != 0 ? 1 : 2), index) : nullptr;
  });
}

MaybeElements eval_gather(const Context& c, const std::vector<int64_t>& dims) {
  const StaticValue &x = c.in(0), &indices = c.in(1);
  const auto axis = static_cast<size_t>(c.attrs.i("axis"));
  const auto step = strides(x.dims);
  return collected(dims, [&](const std::vector<int64_t>& index) -> const StaticElement* {
    const std::vector<int64_t> at(index.begin() + static_cast<std::ptrdiff_t>(axis),
                                  index.begin() + static_cast<std::ptrdiff_t>(axis + indices.dims.size()));
    const StaticElement* given = broadcast_element(indices, at);
    auto row = given ? element_int(*given) : std::nullopt;
    if (row && *row < 0) *row += x.dims[axis];
    if (!row || *row < 0 || *row >= x.dims[axis]) return nullptr;
    int64_t flat = *row * step[axis];
    for (size_t i = 0; i < axis; ++i) flat += index[i] * step[i];
    for (size_t i = axis + 1; i < x.dims.size(); ++i) flat += index[i + indices.dims.size() - 1] * step[i];
    return x.find(flat);
  });
}

MaybeElements eval_concat(const Context& c, const std::vector<int64_t>& dims) {
  const auto axis = static_cast<size_t>(c.attrs.i("axis"));
  return collected(dims, [&](std::vector<int64_t> index) -> const StaticElement* {
    for (const StaticValue* part : c.values) {
      if (index[axis] < part->dims[axis]) return broadcast_element(*part, index);
      index[axis] -= part->dims[axis];
    }
    return nullptr;
  });
}

// The element at an index is the one at base + sum(index * by) in `from`.
MaybeElements strided(const StaticValue& from, const std::vector<int64_t>& dims, int64_t base,
                      const std::vector<int64_t>& by) {
  return collected(dims, [&](const std::vector<int64_t>& index) {
    int64_t flat = base;
    for (size_t i = 0; i < index.size(); ++i) flat += index[i] * by[i];
    return from.find(flat);
  });
}

MaybeElements eval_slice(const Context& c, const std::vector<int64_t>& dims) {
  const StaticValue& x = c.in(0);
  std::vector<int64_t> by = strides(x.dims);
  int64_t base = 0;
  const auto& axes = c.attrs.ints("axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    const int64_t n = x.dims[axis], step = c.attrs.ints("steps")[i];
    if (n == 0) return Elements();
    int64_t from = c.attrs.ints("starts")[i];
    if (from < 0) from += n;
    base += std::clamp(from, int64_t{0}, step > 0 ? n : n - 1) * by[axis];
    // A step that leaves the axis is taken at most once, from the only element.
    by[axis] *= std::clamp(step, -n, n);
  }
  return strided(x, dims, base, by);
}

MaybeElements eval_transpose(const Context& c, const std::vector<int64_t>& dims) {
  const auto step = strides(c.in(0).dims);
  std::vector<int64_t> by;
  for (int64_t axis : c.attrs.ints("perm")) by.push_back(step[static_cast<size_t>(axis)]);
  return strided(c.in(0), dims, 0, by);
}

MaybeElements eval_tile(const Context& c, const std::vector<int64_t>& dims) {
  const auto step = strides(c.in(0).dims);
  return collected(dims, [&](const std::vector<int64_t>& index) {
    int64_t flat = 0;
    for (size_t i = 0; i < index.size(); ++i) flat += index[i] % c.in(0).dims[i] * step[i];
    return c.in(0).find(flat);
  });
}

MaybeElements eval_split(const Context& c, size_t part, const std::vector<int64_t>& dims) {
  const auto by = strides(c.in(0).dims);
  const auto& sizes = c.attrs.ints("sizes");
  const int64_t start =
      std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(part), int64_t{0});
  return strided(c.in(0), dims, start * by[static_cast<size_t>(c.attrs.i("axis"))], by);
}

MaybeElements eval_reduce(const Context& c, const std::vector<int64_t>& dims) {
  const OpKind combine = c.op == OpKind::kReduceSum    ? OpKind::kAdd
                         : c.op == OpKind::kReduceProd ? OpKind::kMul
                         : c.op == OpKind::kReduceMin  ? OpKind::kMin
                                                       : OpKind::kMax;
  const StaticValue& x = c.in(0);
  std::vector<int64_t> kept = x.dims;  // dimensions with the reduced ones as 1: broadcasts to x
  for (int64_t axis : c.attrs.ints("axes")) kept[static_cast<size_t>(axis)] = 1;
  std::vector<std::optional<StaticElement>> sums(static_cast<size_t>(count(dims)));
  size_t next = 0;
  const bool ok = for_each_index(x.dims, [&](const std::vector<int64_t>& index) {
    auto& sum = sums[static_cast<size_t>(broadcast_index(kept, index))];
    const StaticElement& e = x.elements[next++];
    sum = sum ? static_binary(combine, {}, *sum, e) : e;
    return sum.has_value();
  });
  Elements out;
  for (const auto& sum : sums) {
    if (!ok || !sum) return std::nullopt;
    out.push_back(*sum);
  }
  return out;
}

MaybeElements eval_shape_of(const Context& c) {
  Elements out;
  for (const Dim& d : c.types[0]->shape) out.emplace_back(d);
  return out;
}

MaybeElements evaluate_output(const Context& c, size_t output, const std::vector<int64_t>& dims) {
  switch (c.op) {
    case OpKind::kShapeOf:
      return eval_shape_of(c);
    case OpKind::kReshape:
      return c.in(0).elements;
    case OpKind::kExpand:
      return collected(dims,
                       [&](const std::vector<int64_t>& index) { return broadcast_element(c.in(0), index); });
    case OpKind::kWhere:
      return eval_where(c, dims);
    case OpKind::kGather:
      return eval_gather(c, dims);
    case OpKind::kConcat:
      return eval_concat(c, dims);
    case OpKind::kSlice:
      return eval_slice(c, dims);
    case OpKind::kTranspose:
      return eval_transpose(c, dims);
    case OpKind::kTile:
      return eval_tile(c, dims);
    case OpKind::kSplit:
      return eval_split(c, output, dims);
    case OpKind::kReduceSum:
    case OpKind::kReduceProd:
    case OpKind::kReduceMin:
    case OpKind::kReduceMax:
      return eval_reduce(c, dims);
    default:
      break;
  }
  if (is_binary(c.op)) return eval_binary(c, dims);
  if (is_unary(c.op)) return eval_unary(c);
  return std::nullopt;
}

bool operands_known(const Context& c) {
  if (c.op == OpKind::kShapeOf) return true;
  return !c.values.empty() &&
         std::all_of(c.values.begin(), c.values.end(), [](const auto* v) { return v != nullptr; });
}

}  // namespace

const StaticElement* StaticValue::find(int64_t flat) const {
  return flat >= 0 && flat < static_cast<int64_t>(elements.size()) ? &elements[static_cast<size_t>(flat)]
                                                                   : nullptr;
}

bool StaticValue::is_constant() const {
  return std::all_of(elements.begin(), elements.end(), [](const StaticElement& e) {
    const Dim* dim = std::get_if<Dim>(&e);
    return dim == nullptr || dim->is_constant();
  });
}

std::optional<StaticValue> static_from_tensor(const Tensor& tensor) {
  if (tensor.elements() > kMaxStaticElements) return std::nullopt;
  StaticValue value{tensor.dtype(), tensor.shape().dims(), {}};
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (is_float(tensor.dtype())) {
      value.elements.emplace_back(element_as_double(tensor, i));
      continue;
    }
    const int64_t x = element_as_int(tensor, i);
    if (tensor.dtype() == DType::kU64 && x < 0) return std::nullopt;
    value.elements.emplace_back(Dim(x));
  }
  return value;
}

StaticValue static_from_dims(std::span<const Dim> dims) {
  return {DType::kI64, {static_cast<int64_t>(dims.size())}, Elements(dims.begin(), dims.end())};
}

namespace {

void store_float(DType dtype, double x, std::byte* at) {
  const auto put = [at](auto v) { std::memcpy(at, &v, sizeof(v)); };
  switch (dtype) {
    case DType::kF64:
      return put(x);
    case DType::kF16:
      return put(float_to_half(static_cast<float>(x)));
    case DType::kBF16:
      return put(float_to_bfloat16(static_cast<float>(x)));
    default:
      return put(static_cast<float>(x));
  }
}

}  // namespace

Tensor tensor_from_static(const StaticValue& value) {
  LIMBER_ASSERT(value.is_constant());
  auto tensor = Tensor::allocate({value.dtype, Shape::of(value.dims)});
  LIMBER_ASSERT(tensor.ok());  // at most kMaxStaticElements
  const size_t size = dtype_size(value.dtype);
  auto* at = static_cast<std::byte*>(tensor->raw());
  for (const StaticElement& e : value.elements) {
    if (is_float(value.dtype)) {
      store_float(value.dtype, *element_number(e), at);
    } else {
      const int64_t x = *element_int(e);
      std::memcpy(at, &x, size);  // little endian: the low bytes come first
    }
    at += size;
  }
  return *std::move(tensor);
}

std::optional<std::vector<StaticValue>> evaluate_static(OpKind op, const Attrs& attrs,
                                                        std::span<const TensorType* const> types,
                                                        std::span<const StaticValue* const> values,
                                                        std::span<const TensorType> outputs) {
  const Context c{op, attrs, types, values, outputs};
  if (!operands_known(c)) return std::nullopt;
  std::vector<StaticValue> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].shape.is_constant()) return std::nullopt;
    StaticValue result{outputs[i].dtype, outputs[i].shape.dims(), {}};
    const auto n = checked_elements(result.dims, kMaxStaticElements);
    if (!n) return std::nullopt;
    auto elements = evaluate_output(c, i, result.dims);
    if (!elements || static_cast<int64_t>(elements->size()) != *n) return std::nullopt;
    for (const StaticElement& e : *elements) {
      const auto held = element_stored(result.dtype, e);
      if (!held) return std::nullopt;
      result.elements.push_back(*held);
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace limber
