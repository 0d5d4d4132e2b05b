#include <algorithm>
#include <cmath>

#include "ops/op_def.h"
#include "supernet/operators/layer_rewrite.h"

namespace limber {
namespace {

// Channels of a group: with fewer it is nearly depthwise, which kernels run far below their peak.
constexpr int64_t kMinGroupWidth = 4;

// Is `v` made by a convolution of `groups` groups, but for what treats channels one by one?
bool comes_in_groups(const Graph& graph, ValueId v, int64_t groups) {
  for (;;) {
    const NodeId producer = graph.value(v).producer;
    if (producer == kNoNode) return false;
    const Node& node = graph.node(producer);
    const bool conv = node.op == OpKind::kConv;
    if (conv && node.attrs.i("groups", 1) == groups) return true;
    const bool depthwise = conv && graph.type(node.inputs[1]).shape[1] == Dim(1);
    const bool one_by_one = depthwise || is_unary(node.op) || node.op == OpKind::kBatchNorm ||
                            node.op == OpKind::kMaxPool || node.op == OpKind::kAveragePool;
    if (!one_by_one) return false;
    v = node.inputs[0];
  }
}

// Channel b of part a becomes channel a of part b: every group of what follows reads all groups of x.
Result<ValueId> shuffle_channels(Graph& graph, ValueId x, int64_t groups, const std::string& name) {
  const Shape shape = graph.type(x).shape;
  Shape parts{shape[0], groups, shape.dim(1) / groups};
  std::vector<int64_t> perm{0, 2, 1};
  for (int axis = 2; axis < shape.rank(); ++axis) {
    parts.push_back(shape[axis]);
    perm.push_back(axis + 1);
  }
  LIMBER_ASSIGN(ValueId y, emit(graph, OpKind::kReshape, {x}, {{"shape", parts}}, name));
  LIMBER_ASSIGN(y, emit(graph, OpKind::kTranspose, {y}, {{"perm", perm}}, name));
  return emit(graph, OpKind::kReshape, {y}, {{"shape", shape}}, name);
}

// The weights between channels that are left in one group.
Matrix grouped_weights(const WeightLayer& layer, int64_t groups, bool shuffled) {
  const int64_t width = layer.inputs / groups, per_group = layer.outputs / groups;
  Matrix result(layer.outputs, width * layer.window);
  const auto weights = layer.weights.data<float>();
  for (int64_t o = 0; o < layer.outputs; ++o) {
    for (int64_t i = 0; i < width; ++i) {
      const int64_t place = o / per_group * width + i;
      const int64_t channel = shuffled ? place % groups * width + place / groups : place;
      const auto from = weights.begin() + (o * layer.inputs + channel) * layer.window;
      std::copy(from, from + layer.window, result.row(o) + i * layer.window);
    }
  }
  return result;
}

}  // namespace

Result<ReplacementPtr> make_grouped_shuffle(const BlockView& view, double amount) {
  const int64_t groups = std::lround(1 / amount);
  return rewrite_layers(view, [groups](LayerRewriter& r, const WeightLayer& layer) -> Result<ValueId> {
    const bool even = layer.inputs % groups == 0 && layer.outputs % groups == 0;
    const int64_t narrowest = std::min(layer.inputs, layer.outputs) / groups;
    if (!layer.conv || !even || narrowest < kMinGroupWidth || layer.weights.type().rank() >= kMaxRank)
      return kNoValue;
    ValueId x = r.input(layer);
    const bool shuffled = comes_in_groups(r.graph(), x, groups);
    if (shuffled) {
      LIMBER_ASSIGN(x, shuffle_channels(r.graph(), x, groups, layer.node.name + "/shuffle"));
    }
    Shape shape = layer.weights.shape();
    shape[1] = layer.inputs / groups;
    const ValueId w = r.add_weight(layer, "grouped", grouped_weights(layer, groups, shuffled), shape);
    return r.finish(layer, x, w, window_attrs(layer, groups));
  });
}

}  // namespace limber
