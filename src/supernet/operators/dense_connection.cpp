#include <algorithm>

#include "ops/op_def.h"
#include "supernet/operators/layer_rewrite.h"
#include "supernet/operators/work.h"

namespace limber {
namespace {

// Finding the directions takes the cube of the shorter side: minutes beyond this.
constexpr int64_t kLongestSide = 1536;

// Channels that are new, so that all has `share` of the flops; 0: what reads the input alone is more than it.
int64_t growth_for(const WeightLayer& layer, double share) {
  const auto in = static_cast<double>(layer.inputs), out = static_cast<double>(layer.outputs);
  const auto window = static_cast<double>(layer.window);
  const double exact = out * in * (share * window - 1) / (in * window + out);
  const int64_t most = std::min(layer.outputs, layer.inputs * layer.window);
  return exact < 1 ? 0 : std::min(round_channels(exact), most);
}

// The weights without the middle of the window, which the layer's own input gives.
Matrix without_middle(const WeightLayer& layer) {
  Matrix m = layer.matrix();
  for (int64_t o = 0; o < m.rows; ++o) {
    for (int64_t c = 0; c < layer.inputs; ++c) m.at(o, c * layer.window + layer.window / 2) = 0;
  }
  return m;
}

// [outputs, inputs + new]: the middle of the window, and how new channels count.
Matrix joined_weights(const WeightLayer& layer, const Matrix& left) {
  const Matrix weights = layer.matrix();
  Matrix joined(layer.outputs, layer.inputs + left.columns);
  for (int64_t o = 0; o < layer.outputs; ++o) {
    for (int64_t c = 0; c < layer.inputs; ++c)
      joined.at(o, c) = weights.at(o, c * layer.window + layer.window / 2);
    std::copy_n(left.row(o), left.columns, joined.row(o) + layer.inputs);
  }
  return joined;
}

// The input at the places that the layer's outputs are computed for.
Result<ValueId> input_in_place(LayerRewriter& r, const WeightLayer& layer) {
  if (layer.input_places() == 1) return r.input(layer);
  const auto& strides = layer.node.attrs.ints("strides");
  return emit(r.graph(), OpKind::kMaxPool, {r.input(layer)},
              {{"kernel", std::vector<int64_t>(strides.size(), 1)},
               {"strides", strides},
               {"pads", std::vector<int64_t>(2 * strides.size(), 0)},
               {"dilations", std::vector<int64_t>(strides.size(), 1)}},
              layer.node.name + "/places");
}

}  // namespace

Result<ReplacementPtr> make_dense_connection(const BlockView& view, double amount) {
  return rewrite_layers(view, [&](LayerRewriter& r, const WeightLayer& layer) -> Result<ValueId> {
    if (!layer.conv || layer.window == 1 || !layer.is_centred()) return kNoValue;
    const int64_t growth = growth_for(layer, amount);
    if (growth == 0 || std::min(layer.outputs, layer.inputs * layer.window) > kLongestSide) return kNoValue;
    const Factors& factors =
        view.factors.get(layer.weight + "/without_middle", [&] { return without_middle(layer); });
    const Factors::Pair pair = factors.truncated(growth);
    Shape grown = layer.weights.shape(), joined{layer.outputs, layer.inputs + growth};
    grown[0] = growth;
    for (int axis = 2; axis < grown.rank(); ++axis) joined.push_back(1);
    const ValueId grow = r.add_weight(layer, "grow", pair.right, grown);
    const ValueId join = r.add_weight(layer, "join", joined_weights(layer, pair.left), joined);
    LIMBER_ASSIGN(const ValueId fresh,
                  r.convolve(r.input(layer), grow, window_attrs(layer), layer.node.name + "/grow"));
    LIMBER_ASSIGN(const ValueId old, input_in_place(r, layer));
    LIMBER_ASSIGN(const ValueId both, emit(r.graph(), OpKind::kConcat, {old, fresh}, {{"axis", int64_t{1}}},
                                           layer.node.name + "/connect"));
    return r.finish(layer, both, join, pointwise_attrs(grown.rank() - 2));
  });
}

}  // namespace limber
