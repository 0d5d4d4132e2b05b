// Reductions and what works along an axis.
#include <array>
#include <numeric>

#include "io/importer.h"

namespace limber::onnx_io {
namespace {

template <OpKind kOp>
Status reduce(NodeContext& c) {
  LIMBER_ASSIGN(const auto given, c.ints("axes", 1));
  std::vector<int64_t> axes = given.value_or(std::vector<int64_t>{});
  if (axes.empty() && c.i("noop_with_empty_axes", 0) != 0) {
    c.set(0, c.in(0));
    return {};
  }
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(c.rank(0)));
    std::iota(axes.begin(), axes.end(), 0);
  }
  LIMBER_ASSIGN(axes, normal_axes(axes, c.rank(0)));
  return c.lower(kOp, {c.in(0)}, {{"axes", axes}, {"keepdims", int64_t{c.i("keepdims", 1) != 0}}});
}

template <OpKind kOp>
Status arg_reduce(NodeContext& c) {
  LIMBER_ASSIGN(const int64_t axis, normal_axis(c.i("axis", 0), c.rank(0)));
  return c.lower(kOp, {c.in(0)},
                 {{"axis", axis},
                  {"keepdims", int64_t{c.i("keepdims", 1) != 0}},
                  {"select_last", int64_t{c.i("select_last_index", 0) != 0}}});
}

// Before opset 13 all axes from `axis` on were taken together.
template <OpKind kOp>
Status softmax(NodeContext& c) {
  const bool flattens = c.version < 13;
  LIMBER_ASSIGN(const int64_t axis, normal_axis(c.i("axis", flattens ? 1 : -1), c.rank(0)));
  const Shape shape = c.type(0).shape;
  if (!flattens || axis == shape.rank() - 1) return c.lower(kOp, {c.in(0)}, {{"axis", axis}});
  const auto tail = product(shape, static_cast<int>(axis), shape.rank());
  if (!tail)
    return unsupported("more than one symbolic dimension among axes {} and up of {}", axis,
                       shape.to_string());
  Shape flat;
  for (int i = 0; i < axis; ++i) flat.push_back(shape[i]);
  flat.push_back(*tail);
  LIMBER_ASSIGN(ValueId y, c.reshape(c.in(0), flat));
  LIMBER_ASSIGN(y, c.emit(kOp, {y}, {{"axis", axis}}));
  LIMBER_ASSIGN(y, c.reshape(y, shape));
  c.set(0, y);
  return {};
}

Status top_k(NodeContext& c) {
  LIMBER_ASSIGN(const int64_t axis, normal_axis(c.i("axis", -1), c.rank(0)));
  int64_t k = c.i("k", 0);
  if (c.version >= 10) {
    if (!c.has(1)) return corrupt("input 1 (k) is missing");
    LIMBER_ASSIGN(k, c.one_int(1, "k"));
  }
  const Attrs attrs{{"axis", axis},
                    {"k", k},
                    {"largest", int64_t{c.i("largest", 1) != 0}},
                    {"sorted", int64_t{c.i("sorted", 1) != 0}}};
  LIMBER_ASSIGN(const auto results, c.emit_all(OpKind::kTopK, {c.in(0)}, attrs, 2));
  c.set(0, results[0]);
  c.set(1, results[1]);
  return {};
}

Status cum_sum(NodeContext& c) {
  LIMBER_ASSIGN(const int64_t given, c.one_int(1, "axis"));
  LIMBER_ASSIGN(const int64_t axis, normal_axis(given, c.rank(0)));
  return c.lower(OpKind::kCumSum, {c.in(0)},
                 {{"axis", axis},
                  {"exclusive", int64_t{c.i("exclusive", 0) != 0}},
                  {"reverse", int64_t{c.i("reverse", 0) != 0}}});
}

constexpr auto kReduceTable = std::to_array<Converter>({
    {"ArgMax", 1, 1, 1, 1, kAny, arg_reduce<OpKind::kArgMax>},
    {"ArgMin", 1, 1, 1, 1, kAny, arg_reduce<OpKind::kArgMin>},
    {"CumSum", 2, 2, 1, 11, kAny, cum_sum},
    {"Hardmax", 1, 1, 1, 1, kAny, softmax<OpKind::kHardmax>},
    {"LogSoftmax", 1, 1, 1, 1, kAny, softmax<OpKind::kLogSoftmax>},
    {"ReduceL1", 1, 2, 1, 1, kAny, reduce<OpKind::kReduceL1>},
    {"ReduceL2", 1, 2, 1, 1, kAny, reduce<OpKind::kReduceL2>},
    {"ReduceLogSum", 1, 2, 1, 1, kAny, reduce<OpKind::kReduceLogSum>},
    {"ReduceLogSumExp", 1, 2, 1, 1, kAny, reduce<OpKind::kReduceLogSumExp>},
    {"ReduceMax", 1, 2, 1, 1, kAny, reduce<OpKind::kReduceMax>},
    {"ReduceMean", 1, 2, 1, 1, kAny, reduce<OpKind::kReduceMean>},
    {"ReduceMin", 1, 2, 1, 1, kAny, reduce<OpKind::kReduceMin>},
    {"ReduceProd", 1, 2, 1, 1, kAny, reduce<OpKind::kReduceProd>},
    {"ReduceSum", 1, 2, 1, 1, kAny, reduce<OpKind::kReduceSum>},
    {"ReduceSumSquare", 1, 2, 1, 1, kAny, reduce<OpKind::kReduceSumSquare>},
    {"Softmax", 1, 1, 1, 1, kAny, softmax<OpKind::kSoftmax>},
    {"TopK", 1, 2, 2, 1, kAny, top_k},
});

}  // namespace

std::span<const Converter> reduce_converters() { return kReduceTable; }

}  // namespace limber::onnx_io
