#include "passes/channel_rules.h"

#include <algorithm>

#include "ops/op_def.h"

namespace limber::channels {

void Rule::tie_same(ValueId a, ValueId b, int first, int last) const {
  if (a == kNoValue || b == kNoValue) return;
  for (int axis = first; axis < last; ++axis) atoms.tie_axes(a, axis, b, axis);
}

void Rule::pin_from(ValueId v, int first) const {
  if (v == kNoValue) return;
  for (int axis = first; axis < rank(v); ++axis) atoms.pin_axis(v, axis);
}

void Rule::pin_operands() const {
  for (ValueId v : node.inputs) pin_from(v, 0);
  for (ValueId v : node.outputs) pin_from(v, 0);
}

namespace {

void elementwise(const Rule& rule) {
  for (ValueId v : rule.node.inputs) rule.atoms.tie_broadcast(v, rule.output());
}

// x[N,C,..] and vectors of length C, in and out. Space is normalised over, or independent of the channels.
void batch_norm(const Rule& rule) {
  const ValueId x = rule.input(0), y = rule.output(0);
  rule.tie_same(x, y, 0, rule.rank(x));
  const auto vector = [&](ValueId v) {
    if (v != kNoValue) rule.atoms.tie_axes(v, 0, x, 1);
  };
  for (size_t i = 1; i < rule.node.inputs.size(); ++i) vector(rule.input(i));
  for (size_t i = 1; i < rule.node.outputs.size(); ++i) vector(rule.output(i));
}

void instance_norm(const Rule& rule) {
  batch_norm(rule);
  rule.pin_from(rule.input(0), 2);
}

// Whole groups, since every channel of one is normalised with the others.
void group_norm(const Rule& rule) {
  instance_norm(rule);
  const ValueId x = rule.input(0);
  if (!rule.atoms.tracked(x, 1)) return;
  const int64_t channels = rule.atoms.size(x, 1);
  const int64_t width = channels / rule.node.attrs.i("groups");
  for (int64_t c = 0; c < channels; ++c)
    rule.atoms.tie(rule.atoms.atom(x, 1, c), rule.atoms.atom(x, 1, c / width * width));
}

void layer_norm(const Rule& rule) {
  const auto axis = static_cast<int>(rule.node.attrs.i("axis"));
  for (ValueId y : rule.node.outputs) {
    rule.tie_same(rule.input(0), y, 0, axis);
    rule.pin_from(y, axis);
  }
  rule.pin_from(rule.input(0), axis);
  rule.pin_from(rule.input(1), 0);
  rule.pin_from(rule.input(2), 0);
}

// Operators along "axis" of an output of the same rank.
void along_axis(const Rule& rule) {
  const auto axis = static_cast<int>(rule.node.attrs.i("axis"));
  const ValueId x = rule.input(0);
  for (ValueId y : rule.node.outputs) {
    if (y == kNoValue) continue;
    rule.tie_same(x, y, 0, axis);
    rule.tie_same(x, y, axis + 1, rule.rank(x));
    rule.atoms.pin_axis(y, axis);
  }
  rule.atoms.pin_axis(x, axis);
}

void pool(const Rule& rule) {
  rule.tie_same(rule.input(0), rule.output(0), 0, 2);
  rule.pin_from(rule.input(0), 2);
  rule.pin_from(rule.output(0), 2);
  if (rule.output(1) != kNoValue) rule.pin_operands();  // indices count all channels
}

void reduction(const Rule& rule, const std::vector<int64_t>& axes) {
  const ValueId x = rule.input(0), y = rule.output();
  const bool keep = rule.node.attrs.i("keepdims") != 0;
  int to = 0;
  for (int axis = 0; axis < rule.rank(x); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      rule.atoms.tie_axes(x, axis, y, to++);
      continue;
    }
    if (rule.node.op != OpKind::kReduceSum) rule.atoms.pin_axis(x, axis);
    if (keep) rule.atoms.pin_axis(y, to++);
  }
}

// Windows over the channels: nothing can go without changing its neighbours.
void lrn(const Rule& rule) {
  rule.tie_same(rule.input(0), rule.output(), 0, rule.rank(rule.input(0)));
  rule.atoms.pin_axis(rule.input(0), 1);
}

void trilu(const Rule& rule) {
  const int rank = rule.rank(rule.input(0));
  rule.tie_same(rule.input(0), rule.output(), 0, rank);
  rule.pin_from(rule.input(0), rank - 2);
}

using RuleFn = void (*)(const Rule&);

RuleFn find_rule(OpKind op) {
  if (is_unary(op) || is_binary(op) || op == OpKind::kWhere) return elementwise;
  switch (op) {
    case OpKind::kConv:
      return conv;
    case OpKind::kConvTranspose:
      return conv_transpose;
    case OpKind::kGemm:
      return gemm;
    case OpKind::kMatMul:
      return matmul;
    case OpKind::kEinsum:
      return einsum;
    case OpKind::kAttention:
      return attention;
    case OpKind::kBatchNorm:
    case OpKind::kBatchNormTraining:
      return batch_norm;
    case OpKind::kInstanceNorm:
      return instance_norm;
    case OpKind::kGroupNorm:
      return group_norm;
    case OpKind::kLayerNorm:
      return layer_norm;
    case OpKind::kLRN:
      return lrn;
    case OpKind::kTrilu:
      return trilu;
    case OpKind::kLpNorm:
    case OpKind::kSoftmax:
    case OpKind::kLogSoftmax:
    case OpKind::kHardmax:
    case OpKind::kTopK:
    case OpKind::kCumSum:
      return along_axis;
    case OpKind::kMaxPool:
    case OpKind::kAveragePool:
    case OpKind::kLpPool:
    case OpKind::kGlobalAveragePool:
    case OpKind::kGlobalMaxPool:
    case OpKind::kGlobalLpPool:
      return pool;
    case OpKind::kReshape:
      return reshape;
    case OpKind::kTranspose:
      return transpose;
    case OpKind::kExpand:
      return expand;
    case OpKind::kTile:
      return tile;
    case OpKind::kConcat:
      return concat;
    case OpKind::kSplit:
      return split;
    case OpKind::kSlice:
      return slice;
    case OpKind::kGather:
      return gather;
    case OpKind::kPad:
      return pad;
    case OpKind::kResize:
      return resize;
    case OpKind::kDepthToSpace:
      return depth_to_space;
    case OpKind::kSpaceToDepth:
      return space_to_depth;
    default:
      return nullptr;
  }
}

}  // namespace

bool by_whole_groups(int64_t groups, int64_t width) { return groups >= width; }

void tie_node(const Rule& rule) {
  const Node& node = rule.node;
  if (is_reduction(node.op)) return reduction(rule, node.attrs.ints("axes"));
  if (node.op == OpKind::kArgMax || node.op == OpKind::kArgMin)
    return reduction(rule, {node.attrs.i("axis")});
  const RuleFn found = find_rule(node.op);
  const bool has_first = rule.output() != kNoValue;
  found != nullptr&& has_first ? found(rule) : rule.pin_operands();
}

}  // namespace limber::channels
