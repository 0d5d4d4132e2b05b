#include "ops/static_value.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/op_def.h"

namespace limber {
namespace {

using Elements = std::vector<StaticElement>;
using MaybeElement = std::optional<StaticElement>;
using MaybeElements = std::optional<Elements>;

// --- single elements ----------------------------------------------------------------------------------

std::optional<Dim> as_dim(const StaticElement& e) {
  if (const Dim* dim = std::get_if<Dim>(&e)) return *dim;
  const double x = std::get<double>(e);
  if (!(std::abs(x) <= 0x1p53) || x != std::trunc(x)) return std::nullopt;
  return Dim(static_cast<int64_t>(x));
}

std::optional<double> as_number(const StaticElement& e) {
  if (const double* x = std::get_if<double>(&e)) return *x;
  const Dim& dim = std::get<Dim>(e);
  if (!dim.is_constant()) return std::nullopt;
  return static_cast<double>(dim.value());
}

std::optional<int64_t> as_int(const StaticElement& e) {
  const Dim* dim = std::get_if<Dim>(&e);
  if (dim == nullptr || !dim->is_constant()) return std::nullopt;
  return dim->value();
}

double rounded_to(DType dtype, double x) {
  switch (dtype) {
    case DType::kF32: return static_cast<double>(static_cast<float>(x));
    case DType::kF16: return static_cast<double>(half_to_float(float_to_half(static_cast<float>(x))));
    case DType::kBF16: return static_cast<double>(bfloat16_to_float(float_to_bfloat16(static_cast<float>(x))));
    default: return x;
  }
}

bool fits(DType dtype, int64_t x) {
  switch (dtype) {
    case DType::kI8: return x >= INT8_MIN && x <= INT8_MAX;
    case DType::kU8: return x >= 0 && x <= UINT8_MAX;
    case DType::kI16: return x >= INT16_MIN && x <= INT16_MAX;
    case DType::kU16: return x >= 0 && x <= UINT16_MAX;
    case DType::kI32: return x >= INT32_MIN && x <= INT32_MAX;
    case DType::kU32: return x >= 0 && x <= UINT32_MAX;
    case DType::kU64: return x >= 0;
    case DType::kBool: return x == 0 || x == 1;
    default: return true;
  }
}

// The element as `dtype` holds it; nullopt where that would wrap around.
MaybeElement stored(DType dtype, const StaticElement& e) {
  if (is_float(dtype)) {
    const auto x = as_number(e);
    return x ? StaticElement(rounded_to(dtype, *x)) : e;
  }
  const auto dim = as_dim(e);
  if (!dim || (dim->is_constant() && !fits(dtype, dim->value()))) return std::nullopt;
  return StaticElement(*dim);
}

MaybeElement element(std::optional<Dim> dim) {
  return dim ? MaybeElement(StaticElement(*dim)) : std::nullopt;
}
MaybeElement element(std::optional<bool> flag) {
  return flag ? MaybeElement(StaticElement(Dim(*flag ? 1 : 0))) : std::nullopt;
}

// What is known about a - b when every symbol is at least 1.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

std::optional<Bounds> difference(const StaticElement& a, const StaticElement& b) {
  const auto x = as_number(a), y = as_number(b);
  if (x && y && (std::holds_alternative<double>(a) || std::holds_alternative<double>(b))) {
    if (std::isnan(*x) || std::isnan(*y)) return std::nullopt;
    const double sign = *x < *y ? -1 : (*x > *y ? 1 : 0);
    return Bounds{sign, sign};
  }
  const auto da = as_dim(a), db = as_dim(b);
  if (!da || !db) return std::nullopt;
  const auto d = sub(*da, *db);
  if (!d) return std::nullopt;
  const double edge = static_cast<double>(d->scale()) + static_cast<double>(d->offset());
  if (d->is_constant()) return Bounds{edge, edge};
  return d->scale() > 0 ? Bounds{.low = edge} : Bounds{.high = edge};
}

std::optional<bool> compare(OpKind op, const StaticElement& a, const StaticElement& b) {
  const auto d = difference(a, b);
  if (!d) return std::nullopt;
  const auto decide = [](bool yes, bool no) { return yes || no ? std::optional<bool>(yes) : std::nullopt; };
  switch (op) {
    case OpKind::kEqual: return decide(d->low == 0 && d->high == 0, d->low > 0 || d->high < 0);
    case OpKind::kLess: return decide(d->high < 0, d->low >= 0);
    case OpKind::kLessOrEqual: return decide(d->high <= 0, d->low > 0);
    case OpKind::kGreater: return decide(d->low > 0, d->high <= 0);
    case OpKind::kGreaterOrEqual: return decide(d->low >= 0, d->high < 0);
    default: return std::nullopt;
  }
}

std::optional<Dim> divided(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) {
    if (b.value() == 0 || (b.value() == -1 && a.value() == INT64_MIN)) return std::nullopt;
    return Dim(a.value() / b.value());
  }
  return div_exact(a, b);
}

std::optional<Dim> modulo(const Dim& a, const Dim& b, bool fmod) {
  if (!a.is_constant() || !b.is_constant()) {
    return div_exact(a, b) ? std::optional<Dim>(Dim(0)) : std::nullopt;
  }
  if (b.value() == 0 || b.value() == -1) return b.value() == 0 ? std::nullopt : std::optional<Dim>(Dim(0));
  const int64_t r = a.value() % b.value();
  return Dim(!fmod && r != 0 && (r < 0) != (b.value() < 0) ? r + b.value() : r);
}

MaybeElement binary_numbers(OpKind op, const Attrs& attrs, double a, double b) {
  switch (op) {
    case OpKind::kAdd: return a + b;
    case OpKind::kSub: return a - b;
    case OpKind::kMul: return a * b;
    case OpKind::kDiv: return a / b;
    case OpKind::kPow: return std::pow(a, b);
    case OpKind::kMod: return attrs.i("fmod", 0) != 0 ? MaybeElement(std::fmod(a, b)) : std::nullopt;
    default: return std::nullopt;
  }
}

MaybeElement binary_dims(OpKind op, const Attrs& attrs, const Dim& a, const Dim& b) {
  switch (op) {
    case OpKind::kAdd: return element(add(a, b));
    case OpKind::kSub: return element(sub(a, b));
    case OpKind::kMul: return element(mul(a, b));
    case OpKind::kDiv: return element(divided(a, b));
    case OpKind::kMod: return element(modulo(a, b, attrs.i("fmod", 0) != 0));
    default: return std::nullopt;
  }
}

MaybeElement binary(OpKind op, const Attrs& attrs, const StaticElement& a, const StaticElement& b) {
  switch (op) {
    case OpKind::kEqual:
    case OpKind::kLess:
    case OpKind::kLessOrEqual:
    case OpKind::kGreater:
    case OpKind::kGreaterOrEqual: return element(compare(op, a, b));
    case OpKind::kMin:
    case OpKind::kMax: {
      const auto less = compare(OpKind::kLess, a, b);
      if (!less) return std::nullopt;
      return *less == (op == OpKind::kMin) ? a : b;
    }
    case OpKind::kAnd:
    case OpKind::kOr:
    case OpKind::kXor: {
      const auto x = as_int(a), y = as_int(b);
      if (!x || !y) return std::nullopt;
      return StaticElement(Dim(op == OpKind::kAnd ? (*x & *y) : op == OpKind::kOr ? (*x | *y) : (*x ^ *y)));
    }
    default: break;
  }
  const bool numbers = std::holds_alternative<double>(a) && std::holds_alternative<double>(b);
  if (numbers) return binary_numbers(op, attrs, std::get<double>(a), std::get<double>(b));
  const auto x = as_dim(a), y = as_dim(b);
  return x && y ? binary_dims(op, attrs, *x, *y) : std::nullopt;
}

MaybeElement cast(DType to, const StaticElement& e) {
  if (to == DType::kBool) {
    const auto zero = compare(OpKind::kEqual, e, StaticElement(Dim(0)));
    return zero ? MaybeElement(StaticElement(Dim(*zero ? 0 : 1))) : std::nullopt;
  }
  if (is_float(to) || std::holds_alternative<Dim>(e)) return e;
  return StaticElement(std::trunc(std::get<double>(e)));
}

MaybeElement unary_number(OpKind op, double x) {
  switch (op) {
    case OpKind::kNeg: return -x;
    case OpKind::kAbs: return std::abs(x);
    case OpKind::kFloor: return std::floor(x);
    case OpKind::kCeil: return std::ceil(x);
    case OpKind::kRound: return std::nearbyint(x);
    case OpKind::kSqrt: return std::sqrt(x);
    case OpKind::kExp: return std::exp(x);
    case OpKind::kLog: return std::log(x);
    case OpKind::kReciprocal: return 1 / x;
    default: return std::nullopt;
  }
}

MaybeElement unary_dim(OpKind op, const Dim& x) {
  switch (op) {
    case OpKind::kFloor:
    case OpKind::kCeil:
    case OpKind::kRound: return StaticElement(x);
    case OpKind::kNeg: return element(mul(x, Dim(-1)));
    case OpKind::kNot: return x.is_constant() ? MaybeElement(StaticElement(Dim(1 - x.value()))) : std::nullopt;
    case OpKind::kAbs: {
      const auto negative = compare(OpKind::kLess, StaticElement(x), StaticElement(Dim(0)));
      if (!negative) return std::nullopt;
      return *negative ? element(mul(x, Dim(-1))) : MaybeElement(StaticElement(x));
    }
    default: return std::nullopt;
  }
}

MaybeElement unary(OpKind op, const Attrs& attrs, const StaticElement& e) {
  if (op == OpKind::kIdentity) return e;
  if (op == OpKind::kCast) {
    const auto to = parse_dtype(attrs.s("to", ""));
    return to ? cast(*to, e) : std::nullopt;
  }
  if (const double* x = std::get_if<double>(&e)) return unary_number(op, *x);
  return unary_dim(op, std::get<Dim>(e));
}

// --- whole tensors ------------------------------------------------------------------------------------

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

// Gathers an output whose element at an index is the element of `from` at source(index).
template <typename Source>
Elements moved(const StaticValue& from, const std::vector<int64_t>& dims, const Source& source) {
  Elements out;
  for_each_index(dims, [&](const std::vector<int64_t>& index) {
    out.push_back(from.elements[static_cast<size_t>(source(index))]);
    return true;
  });
  return out;
}

// The flat index in a tensor of dimensions `dims` that broadcasts to where `index` points.
int64_t broadcast_index(const std::vector<int64_t>& dims, const std::vector<int64_t>& index) {
  const size_t skip = index.size() - dims.size();
  int64_t flat = 0;
  for (size_t i = 0; i < dims.size(); ++i) flat = flat * dims[i] + (dims[i] == 1 ? 0 : index[skip + i]);
  return flat;
}

MaybeElements eval_binary(const Context& c, const std::vector<int64_t>& dims) {
  Elements out;
  const bool ok = for_each_index(dims, [&](const std::vector<int64_t>& index) {
    const auto& a = c.in(0).elements[static_cast<size_t>(broadcast_index(c.in(0).dims, index))];
    const auto& b = c.in(1).elements[static_cast<size_t>(broadcast_index(c.in(1).dims, index))];
    const auto y = binary(c.op, c.attrs, a, b);
    if (y) out.push_back(*y);
    return y.has_value();
  });
  return ok ? MaybeElements(std::move(out)) : std::nullopt;
}

MaybeElements eval_unary(const Context& c) {
  Elements out;
  for (const StaticElement& e : c.in(0).elements) {
    const auto y = unary(c.op, c.attrs, e);
    if (!y) return std::nullopt;
    out.push_back(*y);
  }
  return out;
}

MaybeElements eval_where(const Context& c, const std::vector<int64_t>& dims) {
  Elements out;
  const bool ok = for_each_index(dims, [&](const std::vector<int64_t>& index) {
    const auto flag = as_int(c.in(0).elements[static_cast<size_t>(broadcast_index(c.in(0).dims, index))]);
    if (!flag) return false;
    const StaticValue& from = c.in(*flag != 0 ? 1 : 2);
    out.push_back(from.elements[static_cast<size_t>(broadcast_index(from.dims, index))]);
    return true;
  });
  return ok ? MaybeElements(std::move(out)) : std::nullopt;
}

MaybeElements eval_gather(const Context& c, const std::vector<int64_t>& dims) {
  const StaticValue &x = c.in(0), &indices = c.in(1);
  const auto axis = static_cast<size_t>(c.attrs.i("axis"));
  const auto step = strides(x.dims);
  bool ok = true;
  Elements out = moved(x, dims, [&](const std::vector<int64_t>& index) {
    const std::vector<int64_t> at(index.begin() + static_cast<std::ptrdiff_t>(axis),
                                  index.begin() + static_cast<std::ptrdiff_t>(axis + indices.dims.size()));
    auto row = as_int(indices.elements[static_cast<size_t>(broadcast_index(indices.dims, at))]);
    if (row && *row < 0) *row += x.dims[axis];
    if (!row || *row < 0 || *row >= x.dims[axis]) return ok = false, int64_t{0};
    int64_t flat = *row * step[axis];
    for (size_t i = 0; i < axis; ++i) flat += index[i] * step[i];
    for (size_t i = axis + 1; i < x.dims.size(); ++i) flat += index[i + indices.dims.size() - 1] * step[i];
    return flat;
  });
  return ok ? MaybeElements(std::move(out)) : std::nullopt;
}

MaybeElements eval_concat(const Context& c, const std::vector<int64_t>& dims) {
  const auto axis = static_cast<size_t>(c.attrs.i("axis"));
  Elements out;
  for_each_index(dims, [&](std::vector<int64_t> index) {
    size_t part = 0;
    while (index[axis] >= c.in(part).dims[axis]) index[axis] -= c.in(part++).dims[axis];
    out.push_back(c.in(part).elements[static_cast<size_t>(broadcast_index(c.in(part).dims, index))]);
    return true;
  });
  return out;
}

MaybeElements eval_slice(const Context& c, const std::vector<int64_t>& dims) {
  const StaticValue& x = c.in(0);
  const auto step = strides(x.dims);
  std::vector<int64_t> start(x.dims.size(), 0), stride(x.dims.size(), 1);
  const auto& axes = c.attrs.ints("axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    const int64_t n = x.dims[axis], by = c.attrs.ints("steps")[i];
    if (n == 0) return Elements();
    int64_t from = c.attrs.ints("starts")[i];
    if (from < 0) from += n;
    start[axis] = std::clamp(from, int64_t{0}, by > 0 ? n : n - 1);
    stride[axis] = by;
  }
  return moved(x, dims, [&](const std::vector<int64_t>& index) {
    int64_t flat = 0;
    for (size_t i = 0; i < index.size(); ++i) flat += (start[i] + index[i] * stride[i]) * step[i];
    return flat;
  });
}

MaybeElements eval_transpose(const Context& c, const std::vector<int64_t>& dims) {
  const auto step = strides(c.in(0).dims);
  const auto& perm = c.attrs.ints("perm");
  return moved(c.in(0), dims, [&](const std::vector<int64_t>& index) {
    int64_t flat = 0;
    for (size_t i = 0; i < index.size(); ++i) flat += index[i] * step[static_cast<size_t>(perm[i])];
    return flat;
  });
}

MaybeElements eval_tile(const Context& c, const std::vector<int64_t>& dims) {
  const auto step = strides(c.in(0).dims);
  return moved(c.in(0), dims, [&](const std::vector<int64_t>& index) {
    int64_t flat = 0;
    for (size_t i = 0; i < index.size(); ++i) flat += index[i] % c.in(0).dims[i] * step[i];
    return flat;
  });
}

MaybeElements eval_split(const Context& c, size_t part, const std::vector<int64_t>& dims) {
  const auto step = strides(c.in(0).dims);
  const auto axis = static_cast<size_t>(c.attrs.i("axis"));
  const auto& sizes = c.attrs.ints("sizes");
  const int64_t start = std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(part), int64_t{0});
  return moved(c.in(0), dims, [&](const std::vector<int64_t>& index) {
    int64_t flat = start * step[axis];
    for (size_t i = 0; i < index.size(); ++i) flat += index[i] * step[i];
    return flat;
  });
}

MaybeElements eval_reduce(const Context& c, const std::vector<int64_t>& dims) {
  const OpKind combine = c.op == OpKind::kReduceSum    ? OpKind::kAdd
                         : c.op == OpKind::kReduceProd ? OpKind::kMul
                         : c.op == OpKind::kReduceMin  ? OpKind::kMin
                                                       : OpKind::kMax;
  const StaticValue& x = c.in(0);
  std::vector<int64_t> kept = x.dims;  // dimensions with the reduced ones as 1: broadcasts to x
  for (int64_t axis : c.attrs.ints("axes")) kept[static_cast<size_t>(axis)] = 1;
  std::vector<MaybeElement> sums(static_cast<size_t>(count(dims)));
  size_t next = 0;
  const bool ok = for_each_index(x.dims, [&](const std::vector<int64_t>& index) {
    MaybeElement& sum = sums[static_cast<size_t>(broadcast_index(kept, index))];
    const StaticElement& e = x.elements[next++];
    sum = sum ? binary(combine, {}, *sum, e) : e;
    return sum.has_value();
  });
  Elements out;
  for (const MaybeElement& sum : sums) {
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
    case OpKind::kShapeOf: return eval_shape_of(c);
    case OpKind::kReshape: return c.in(0).elements;
    case OpKind::kExpand:
      return moved(c.in(0), dims,
                   [&](const std::vector<int64_t>& index) { return broadcast_index(c.in(0).dims, index); });
    case OpKind::kWhere: return eval_where(c, dims);
    case OpKind::kGather: return eval_gather(c, dims);
    case OpKind::kConcat: return eval_concat(c, dims);
    case OpKind::kSlice: return eval_slice(c, dims);
    case OpKind::kTranspose: return eval_transpose(c, dims);
    case OpKind::kTile: return eval_tile(c, dims);
    case OpKind::kSplit: return eval_split(c, output, dims);
    case OpKind::kReduceSum:
    case OpKind::kReduceProd:
    case OpKind::kReduceMin:
    case OpKind::kReduceMax: return eval_reduce(c, dims);
    default: break;
  }
  if (is_binary(c.op)) return eval_binary(c, dims);
  if (is_unary(c.op)) return eval_unary(c);
  return std::nullopt;
}

bool operands_known(const Context& c) {
  if (c.op == OpKind::kShapeOf) return true;
  return !c.values.empty() && std::all_of(c.values.begin(), c.values.end(), [](const auto* v) { return v != nullptr; });
}

}  // namespace

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
    case DType::kF64: return put(x);
    case DType::kF16: return put(float_to_half(static_cast<float>(x)));
    case DType::kBF16: return put(float_to_bfloat16(static_cast<float>(x)));
    default: return put(static_cast<float>(x));
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
      store_float(value.dtype, *as_number(e), at);
    } else {
      const int64_t x = *as_int(e);
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
      const auto held = stored(result.dtype, e);
      if (!held) return std::nullopt;
      result.elements.push_back(*held);
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace limber
