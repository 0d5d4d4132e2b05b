#include <algorithm>

#include "ops/op_def.h"
#include "supernet/operators/layer_rewrite.h"
#include "supernet/operators/work.h"

namespace limber {
namespace {

// Finding the directions takes the cube of the shorter side: minutes beyond this.
constexpr int64_t kMaxSide = 1536;

// rank * (outputs + inputs * window) is about `share` of outputs * inputs * window.
int64_t rank_for(const WeightLayer& layer, double share) {
  const int64_t columns = layer.inputs * layer.window;
  const int64_t full = std::min(layer.outputs, columns);
  if (share >= 1) return full;
  const double exact = share * static_cast<double>(layer.outputs) * static_cast<double>(columns) /
                       static_cast<double>(layer.outputs + columns);
  return std::min(round_channels(exact), full);
}

Result<ValueId> low_rank_conv(LayerRewriter& r, const WeightLayer& layer, const Factors::Pair& pair) {
  Shape first = layer.weights.shape();
  first[0] = pair.right.rows;
  Shape second({layer.outputs, pair.left.columns});
  for (int axis = 2; axis < first.rank(); ++axis) second.push_back(1);
  const ValueId right = r.add_weight(layer, "reduce", pair.right, first);
  const ValueId left = r.add_weight(layer, "restore", pair.left, second);
  LIMBER_ASSIGN(const ValueId reduced,
                r.convolve(r.input(layer), right, window_attrs(layer), layer.node.name + "/reduce"));
  return r.finish(layer, reduced, left, pointwise_attrs(first.rank() - 2));
}

// x w = (x right^T) left^T, with w[inputs, outputs] ~ (left right)^T.
Result<ValueId> low_rank_product(LayerRewriter& r, const WeightLayer& layer, const Factors::Pair& pair) {
  const int64_t rank = pair.right.rows;
  const ValueId right = r.add_weight(layer, "reduce", transposed(pair.right), {layer.inputs, rank});
  const ValueId left = r.add_weight(layer, "restore", transposed(pair.left), {rank, layer.outputs});
  LIMBER_ASSIGN(const ValueId reduced,
                emit(r.graph(), layer.node.op, {r.input(layer), right}, {}, layer.node.name + "/reduce"));
  Attrs attrs = layer.node.attrs;
  attrs.erase("trans_b");
  return r.finish(layer, reduced, left, std::move(attrs));
}

}  // namespace

Result<ReplacementPtr> make_low_rank(const BlockView& view, double amount) {
  return rewrite_layers(view, [&](LayerRewriter& r, const WeightLayer& layer) -> Result<ValueId> {
    const int64_t side = std::min(layer.outputs, layer.inputs * layer.window);
    if (side < 2 || side > kMaxSide) return kNoValue;
    const Factors::Pair pair = layer.factors(view.factors).truncated(rank_for(layer, amount));
    return layer.conv ? low_rank_conv(r, layer, pair) : low_rank_product(r, layer, pair);
  });
}

}  // namespace limber
