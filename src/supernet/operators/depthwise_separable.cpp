#include "supernet/operators/layer_rewrite.h"

namespace limber {
namespace {

struct SeparatedWeights {
  Matrix windows;  // [inputs, window]
  Matrix mixing;   // [outputs, inputs]
};

// What an input channel contributes, [outputs, window], as a window times a column: its leading singular
// pair.
SeparatedWeights separate(const WeightLayer& layer) {
  SeparatedWeights result{Matrix(layer.inputs, layer.window), Matrix(layer.outputs, layer.inputs)};
  const auto weights = layer.weights.data<float>();
  Matrix channel(layer.outputs, layer.window);
  for (int64_t c = 0; c < layer.inputs; ++c) {
    for (int64_t o = 0; o < layer.outputs; ++o) {
      const auto from = weights.begin() + (o * layer.inputs + c) * layer.window;
      std::copy(from, from + layer.window, channel.row(o));
    }
    const Factors::Pair pair = Factors(channel).truncated(1);
    std::copy(pair.right.data.begin(), pair.right.data.end(), result.windows.row(c));
    for (int64_t o = 0; o < layer.outputs; ++o) result.mixing.at(o, c) = pair.left.at(o, 0);
  }
  return result;
}

}  // namespace

Result<ReplacementPtr> make_depthwise_separable(const BlockView& view, double /*amount*/) {
  return rewrite_layers(view, [](LayerRewriter& r, const WeightLayer& layer) -> Result<ValueId> {
    if (!layer.conv || layer.window == 1 || layer.inputs == 1) return kNoValue;
    const SeparatedWeights separated = separate(layer);
    Shape first = layer.weights.shape(), second{layer.outputs, layer.inputs};
    first[0] = layer.inputs;
    first[1] = 1;
    for (int axis = 2; axis < first.rank(); ++axis) second.push_back(1);
    const ValueId windows = r.add_weight(layer, "depthwise", separated.windows, first);
    const ValueId mixing = r.add_weight(layer, "pointwise", separated.mixing, second);
    LIMBER_ASSIGN(const ValueId filtered,
                  r.convolve(r.input(layer), windows, window_attrs(layer, layer.inputs),
                             layer.node.name + "/depthwise"));
    return r.finish(layer, filtered, mixing, pointwise_attrs(first.rank() - 2));
  });
}

}  // namespace limber
