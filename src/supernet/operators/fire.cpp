#include <algorithm>

#include "ops/op_def.h"
#include "supernet/operators/layer_rewrite.h"
#include "supernet/operators/work.h"

namespace limber {
namespace {

// Channels of the squeeze, so that all has `share` of the flops: it works on the input's places, of which
// there are as many per output as the strides say.
int64_t squeezed_channels(const WeightLayer& layer, double share) {
  const double before = static_cast<double>(layer.outputs * layer.inputs * layer.window);
  const int64_t half = layer.outputs / 2;
  const auto per_channel =
      static_cast<double>(layer.inputs * layer.input_places() + half * (1 + layer.window));
  return std::min(round_channels(share * before / per_channel), layer.inputs);
}

// The share of the weights' squares that is in the middle of the window, for half of the outputs.
double middle_share(const WeightLayer& layer, int64_t first, int64_t count) {
  const auto weights = layer.weights.data<float>();
  double middle = 0, all = 0;
  for (int64_t i = first * layer.inputs; i < (first + count) * layer.inputs; ++i) {
    for (int64_t k = 0; k < layer.window; ++k) {
      const double w = weights[static_cast<size_t>(i * layer.window + k)];
      all += w * w;
      if (k == layer.window / 2) middle += w * w;
    }
  }
  return all > 0 ? middle / all : 0;
}

// Half of the outputs, from `first` on, computed from the squeezed channels; `right` is [squeezed, outputs *
// window]. Without a window only the middle of it is taken.
class ExpandHalf {
 public:
  ExpandHalf(LayerRewriter& r, const WeightLayer& layer, const Matrix& right, int64_t first, int64_t count)
      : r_(r), layer_(layer), right_(right), first_(first), count_(count) {}

  Result<ValueId> emit_to(ValueId squeezed, bool windowed) {
    const int64_t window = windowed ? layer_.window : 1, skip = windowed ? 0 : layer_.window / 2;
    Matrix values(count_, right_.rows * window);
    for (int64_t o = 0; o < count_; ++o) {
      for (int64_t s = 0; s < right_.rows; ++s) {
        for (int64_t k = 0; k < window; ++k)
          values.at(o, s * window + k) = right_.at(s, (first_ + o) * layer_.window + skip + k);
      }
    }
    Shape shape = layer_.weights.shape();
    shape[0] = count_;
    shape[1] = right_.rows;
    for (int axis = 2; !windowed && axis < shape.rank(); ++axis) shape[axis] = 1;
    Attrs attrs = windowed ? window_attrs(layer_) : pointwise_attrs(shape.rank() - 2);
    attrs.set("strides", layer_.node.attrs.ints("strides"));
    const char* part = windowed ? "expand_window" : "expand";
    const ValueId w = r_.add_weight(layer_, part, values, shape);
    return r_.convolve(squeezed, w, std::move(attrs), fmt::format("{}/{}", layer_.node.name, part));
  }

 private:
  LayerRewriter& r_;
  const WeightLayer& layer_;
  const Matrix& right_;
  const int64_t first_, count_;
};

// A bias, residual or activation of the layer's own would have to follow the Concat.
bool is_bare(const Node& node) {
  return std::all_of(node.inputs.begin() + 2, node.inputs.end(), [](ValueId v) { return v == kNoValue; }) &&
         fused_activation(node.attrs).op == OpKind::kIdentity;
}

}  // namespace

Result<ReplacementPtr> make_fire(const BlockView& view, double amount) {
  return rewrite_layers(view, [&](LayerRewriter& r, const WeightLayer& layer) -> Result<ValueId> {
    if (!layer.conv || layer.window == 1 || layer.outputs % 2 != 0 || !layer.is_centred()) return kNoValue;
    if (!is_bare(layer.node)) return kNoValue;
    const Factors& factors = layer.input_factors(view.factors);
    const Factors::Pair pair = factors.truncated(squeezed_channels(layer, amount));
    const Matrix squeeze = transposed(pair.left);
    Shape shape{squeeze.rows, layer.inputs};
    for (int axis = 2; axis < layer.weights.type().rank(); ++axis) shape.push_back(1);
    const ValueId w = r.add_weight(layer, "squeeze", squeeze, shape);
    LIMBER_ASSIGN(const ValueId squeezed, r.convolve(r.input(layer), w, pointwise_attrs(shape.rank() - 2),
                                                     layer.node.name + "/squeeze"));
    const int64_t half = layer.outputs / 2;
    const bool second_windowed = middle_share(layer, 0, half) >= middle_share(layer, half, half);
    LIMBER_ASSIGN(const ValueId first,
                  ExpandHalf(r, layer, pair.right, 0, half).emit_to(squeezed, !second_windowed));
    LIMBER_ASSIGN(const ValueId second,
                  ExpandHalf(r, layer, pair.right, half, half).emit_to(squeezed, second_windowed));
    return emit(r.graph(), OpKind::kConcat, {first, second}, {{"axis", int64_t{1}}}, layer.node.name);
  });
}

}  // namespace limber
