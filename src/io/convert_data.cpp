// Operators that move data.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "io/importer.h"

namespace limber::onnx_io {
namespace {

constexpr int64_t kOpenEnd = std::numeric_limits<int64_t>::max();

Result<std::vector<ValueId>> all_inputs(NodeContext& c) {
  std::vector<ValueId> inputs;
  for (int i = 0; i < c.inputs(); ++i) {
    if (!c.has(i)) return corrupt("input {} is missing", i);
    inputs.push_back(c.in(i));
  }
  return inputs;
}

Status concat(NodeContext& c) {
  LIMBER_ASSIGN(const auto inputs, all_inputs(c));
  if (c.version >= 4 && !c.has_attr("axis")) return corrupt("it has no axis");
  LIMBER_ASSIGN(const int64_t axis, normal_axis(c.i("axis", 1), c.rank(0)));
  return c.lower(OpKind::kConcat, inputs, {{"axis", axis}});
}

Result<std::vector<int64_t>> equal_parts(NodeContext& c, const Dim& dim) {
  const int64_t parts = c.i("num_outputs", c.outputs());
  if (parts != c.outputs() || parts < 1) return corrupt("{} parts and {} outputs", parts, c.outputs());
  LIMBER_ASSIGN(const int64_t n, c.constant_dim(dim, "the dimension to split"));
  const int64_t part = (n + parts - 1) / parts;
  const int64_t last = n - part * (parts - 1);
  if (last < 0 || (last != part && c.version < 18))
    return corrupt("{} does not split into {} equal parts", n, parts);
  std::vector<int64_t> sizes(static_cast<size_t>(parts), part);
  sizes.back() = last;
  return sizes;
}

Status split(NodeContext& c) {
  LIMBER_ASSIGN(const int64_t axis, normal_axis(c.i("axis", 0), c.rank(0)));
  LIMBER_ASSIGN(auto sizes, c.ints("split", 1));
  if (!sizes || sizes->empty()) {
    LIMBER_ASSIGN(sizes, equal_parts(c, c.type(0).shape[static_cast<int>(axis)]));
  }
  if (static_cast<int>(sizes->size()) != c.outputs())
    return corrupt("{} sizes and {} outputs", sizes->size(), c.outputs());
  return c.lower(OpKind::kSplit, {c.in(0)}, {{"axis", axis}, {"sizes", *sizes}});
}

// An end of a slice that may be written with symbols: relative to the end of the axis, it is a number.
Result<int64_t> slice_end(NodeContext& c, const Dim& end, const Dim& dim, const char* what) {
  if (end.is_constant()) return end.value();
  const auto rest = sub(end, dim);
  if (!rest || !rest->is_constant()) return c.constant_dim(end, what);
  return rest->value() >= 0 ? kOpenEnd : rest->value();
}

Status slice(NodeContext& c) {
  std::vector<Dim> starts, ends;
  std::vector<int64_t> axes, steps;
  if (c.version < 10) {
    const auto first = c.ints("starts"), last = c.ints("ends");
    starts.assign(first.begin(), first.end());
    ends.assign(last.begin(), last.end());
    axes = c.ints("axes");
  } else {
    if (!c.has(1) || !c.has(2)) return corrupt("starts or ends are missing");
    LIMBER_ASSIGN(starts, c.dims(1, "starts"));
    LIMBER_ASSIGN(ends, c.dims(2, "ends"));
    if (c.has(3)) {
      LIMBER_ASSIGN(axes, c.ints(3, "axes"));
    }
    if (c.has(4)) {
      LIMBER_ASSIGN(steps, c.ints(4, "steps"));
    }
  }
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (starts.size() != ends.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    return corrupt("{} starts, {} ends, {} axes, {} steps", starts.size(), ends.size(), axes.size(),
                   steps.size());
  }
  LIMBER_TRY(normal_axes(axes, c.rank(0)).status());
  std::vector<int64_t> from, to;
  for (size_t i = 0; i < axes.size(); ++i) {
    LIMBER_ASSIGN(axes[i], normal_axis(axes[i], c.rank(0)));
    if (steps[i] == 0) return corrupt("a step of 0");
    const Dim dim = c.type(0).shape[static_cast<int>(axes[i])];
    LIMBER_ASSIGN(const int64_t start, slice_end(c, starts[i], dim, "a start"));
    LIMBER_ASSIGN(const int64_t end, slice_end(c, ends[i], dim, "an end"));
    from.push_back(start);
    to.push_back(end);
  }
  const Attrs attrs{{"axes", axes}, {"starts", from}, {"ends", to}, {"steps", steps}};
  LIMBER_ASSIGN(const ValueId y, c.emit(OpKind::kSlice, {c.in(0)}, attrs));
  c.set(0, y);
  return {};
}

// Where the number of repeats is symbolic, an axis of size 1 can still be expanded.
Result<ValueId> symbolic_tile(NodeContext& c, const std::vector<Dim>& repeats) {
  Shape shape = c.type(0).shape;
  for (int i = 0; i < shape.rank(); ++i) {
    const Dim& repeat = repeats[static_cast<size_t>(i)];
    if (repeat == Dim(1)) continue;
    if (shape[i] != Dim(1)) LIMBER_TRY(c.constant_dim(repeat, "a number of repeats").status());
    if (shape[i] != Dim(1)) return unsupported("symbolic and other repeats together");
    shape[i] = repeat;
  }
  return c.emit(OpKind::kExpand, {c.in(0)}, {{"shape", shape}});
}

Status tile(NodeContext& c) {
  const auto rank = static_cast<size_t>(c.rank(0));
  std::vector<Dim> repeats;
  if (c.version < 6) {
    if (!c.has(2)) return corrupt("input 2 (axis) is missing");
    LIMBER_ASSIGN(const int64_t count, c.one_int(1, "tiles"));
    LIMBER_ASSIGN(const int64_t given, c.one_int(2, "axis"));
    LIMBER_ASSIGN(const int64_t axis, normal_axis(given, c.rank(0)));
    repeats.assign(rank, Dim(1));
    repeats[static_cast<size_t>(axis)] = Dim(count);
  } else {
    LIMBER_ASSIGN(repeats, c.dims(1, "repeats"));
  }
  if (repeats.size() != rank) return corrupt("{} repeats of a tensor of rank {}", repeats.size(), rank);
  std::vector<int64_t> counts;
  for (const Dim& d : repeats) {
    if (!d.is_constant()) {
      LIMBER_ASSIGN(const ValueId y, symbolic_tile(c, repeats));
      c.set(0, y);
      return {};
    }
    if (d.value() < 0) return corrupt("{} repeats", d.value());
    counts.push_back(d.value());
  }
  LIMBER_ASSIGN(const ValueId y, c.emit(OpKind::kTile, {c.in(0)}, {{"repeats", counts}}));
  c.set(0, y);
  return {};
}

// --- by index -------------------------------------------------------------------------------------------

template <OpKind kOp>
Status gather(NodeContext& c) {
  LIMBER_ASSIGN(const int64_t axis, normal_axis(c.i("axis", 0), c.rank(0)));
  return c.lower(kOp, {c.in(0), c.in(1)}, {{"axis", axis}});
}

Status gather_nd(NodeContext& c) {
  return c.lower(OpKind::kGatherND, {c.in(0), c.in(1)}, {{"batch_dims", c.i("batch_dims", 0)}});
}

Result<std::string> reduction(NodeContext& c) {
  const std::string name = c.s("reduction", "none");
  for (const char* known : {"none", "add", "mul", "max", "min"}) {
    if (name == known) return name;
  }
  return corrupt("reduction is '{}'", name);
}

Status scatter_elements(NodeContext& c) {
  LIMBER_ASSIGN(const int64_t axis, normal_axis(c.i("axis", 0), c.rank(0)));
  LIMBER_ASSIGN(const std::string how, reduction(c));
  return c.lower(OpKind::kScatterElements, {c.in(0), c.in(1), c.in(2)}, {{"axis", axis}, {"reduction", how}});
}

Status scatter_nd(NodeContext& c) {
  LIMBER_ASSIGN(const std::string how, reduction(c));
  return c.lower(OpKind::kScatterND, {c.in(0), c.in(1), c.in(2)}, {{"reduction", how}});
}

// Which elements are kept must be known; keeping them is then a Gather.
Status compress(NodeContext& c) {
  LIMBER_ASSIGN(const StaticValue* condition, c.require(1, "the condition"));
  std::vector<int64_t> kept;
  for (size_t i = 0; i < condition->elements.size(); ++i) {
    if (condition->elements[i] != StaticElement(Dim(0))) kept.push_back(static_cast<int64_t>(i));
  }
  ValueId x = c.in(0);
  int64_t axis = 0;
  if (c.has_attr("axis")) {
    LIMBER_ASSIGN(axis, normal_axis(c.i("axis", 0), c.rank(0)));
  } else {
    const auto total = product(c.type(0).shape, 0, c.rank(0));
    if (!total) return unsupported("flattening several symbolic dimensions of {}", c.type(0).to_string());
    LIMBER_ASSIGN(x, c.reshape(x, Shape{*total}));
  }
  const auto count = static_cast<int64_t>(kept.size());
  const ValueId indices = c.constant(Tensor::from(std::span<const int64_t>(kept), Shape{count}));
  return c.lower(OpKind::kGather, {x, indices}, {{"axis", axis}});
}

Status one_hot(NodeContext& c) {
  LIMBER_ASSIGN(const auto depth, c.floats(1, "depth"));
  if (depth.size() != 1 || !(depth[0] >= 0 && depth[0] <= static_cast<double>(kMaxConstantElements))) {
    return corrupt("depth is not one number in range");
  }
  LIMBER_ASSIGN(const int64_t axis, normal_axis(c.i("axis", -1), c.rank(0) + 1));
  ValueId indices = c.in(0);
  if (c.type(0).dtype != DType::kI64) {
    LIMBER_ASSIGN(indices, c.emit(OpKind::kCast, {indices}, {{"to", std::string("i64")}}));
  }
  return c.lower(OpKind::kOneHot, {indices, c.in(2)},
                 {{"axis", axis}, {"depth", static_cast<int64_t>(depth[0])}});
}

Status reverse_sequence(NodeContext& c) {
  LIMBER_ASSIGN(const int64_t batch, normal_axis(c.i("batch_axis", 1), c.rank(0)));
  LIMBER_ASSIGN(const int64_t time, normal_axis(c.i("time_axis", 0), c.rank(0)));
  return c.lower(OpKind::kReverseSequence, {c.in(0), c.in(1)}, {{"batch_axis", batch}, {"time_axis", time}});
}

// --- planes ---------------------------------------------------------------------------------------------

Result<std::vector<int64_t>> pad_amounts(NodeContext& c) {
  const auto rank = static_cast<size_t>(c.rank(0));
  if (c.version < 2) return c.ints("paddings");
  if (c.version < 11) return c.ints("pads");
  if (!c.has(1)) return corrupt("input 1 (pads) is missing");
  LIMBER_ASSIGN(auto pads, c.ints(1, "pads"));
  if (!c.has(3)) return pads;
  LIMBER_ASSIGN(const auto axes, c.ints(3, "axes"));
  if (pads.size() != 2 * axes.size()) return corrupt("{} pads for {} axes", pads.size(), axes.size());
  LIMBER_TRY(normal_axes(axes, c.rank(0)).status());
  std::vector<int64_t> all(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    LIMBER_ASSIGN(const int64_t axis, normal_axis(axes[i], c.rank(0)));
    all[static_cast<size_t>(axis)] = pads[i];
    all[rank + static_cast<size_t>(axis)] = pads[axes.size() + i];
  }
  return all;
}

Status pad(NodeContext& c) {
  LIMBER_ASSIGN(const auto pads, pad_amounts(c));
  if (pads.size() != 2 * static_cast<size_t>(c.rank(0))) {
    return corrupt("{} pads of a tensor of rank {}", pads.size(), c.rank(0));
  }
  for (int64_t p : pads) {
    if (p > INT32_MAX || p < -INT32_MAX) return corrupt("pads hold {}", p);
  }
  const std::string mode = c.s("mode", "constant");
  double value = c.f("value", 0);
  if (c.has(2)) {
    LIMBER_ASSIGN(const auto given, c.floats(2, "constant_value"));
    if (given.size() > 1) return corrupt("constant_value has {} elements", given.size());
    if (!given.empty()) value = given[0];
  }
  return c.lower(OpKind::kPad, {c.in(0)}, {{"pads", pads}, {"mode", mode}, {"value", value}});
}

Status depth_to_space(NodeContext& c) {
  return c.lower(OpKind::kDepthToSpace, {c.in(0)},
                 {{"blocksize", c.i("blocksize", 0)}, {"mode", c.s("mode", "DCR")}});
}

Status space_to_depth(NodeContext& c) {
  return c.lower(OpKind::kSpaceToDepth, {c.in(0)}, {{"blocksize", c.i("blocksize", 0)}});
}

Status trilu(NodeContext& c) {
  int64_t k = 0;
  if (c.has(1)) {
    LIMBER_ASSIGN(k, c.one_int(1, "k"));
  }
  return c.lower(OpKind::kTrilu, {c.in(0)}, {{"k", k}, {"upper", int64_t{c.i("upper", 1) != 0}}});
}

constexpr auto kDataTable = std::to_array<Converter>({
    {"Compress", 2, 2, 1, 9, kAny, compress},
    {"Concat", 1, -1, 1, 1, kAny, concat},
    {"DepthToSpace", 1, 1, 1, 1, kAny, depth_to_space},
    {"Gather", 2, 2, 1, 1, kAny, gather<OpKind::kGather>},
    {"GatherElements", 2, 2, 1, 11, kAny, gather<OpKind::kGatherElements>},
    {"GatherND", 2, 2, 1, 11, kAny, gather_nd},
    {"OneHot", 3, 3, 1, 9, kAny, one_hot},
    {"Pad", 1, 4, 1, 1, kAny, pad},
    {"ReverseSequence", 2, 2, 1, 10, kAny, reverse_sequence},
    {"Scatter", 3, 3, 1, 9, 10, scatter_elements},
    {"ScatterElements", 3, 3, 1, 11, kAny, scatter_elements},
    {"ScatterND", 3, 3, 1, 11, kAny, scatter_nd},
    {"Slice", 1, 5, 1, 1, kAny, slice},
    {"SpaceToDepth", 1, 1, 1, 1, kAny, space_to_depth},
    {"Split", 1, 2, -1, 1, kAny, split},
    {"Tile", 2, 3, 1, 1, kAny, tile},
    {"Trilu", 1, 2, 1, 14, kAny, trilu},
});

}  // namespace

std::span<const Converter> data_converters() { return kDataTable; }

}  // namespace limber::onnx_io
