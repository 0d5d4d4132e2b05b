#include <algorithm>
#include <cmath>

#include "supernet/operators/layer_rewrite.h"
#include "supernet/operators/work.h"

namespace limber {
namespace {

// Finding directions takes the cube of the number of channels: minutes beyond this.
constexpr int64_t kMostChannels = 1536;
constexpr int kSweeps = 2;  // between the two sides; more of them change little

struct Ranks {
  int64_t inputs = 0, outputs = 0;
};

// The same share a of the channels on both sides, so that a * inputs^2 * places + a^2 * inputs * outputs *
// window + a * outputs^2 is `share` of the work.
Ranks ranks_for(const WeightLayer& layer, double share) {
  const auto in = static_cast<double>(layer.inputs), out = static_cast<double>(layer.outputs);
  const double before = in * out * static_cast<double>(layer.window);
  const double half = 0.5 * (in * in * static_cast<double>(layer.input_places()) + out * out) / before;
  const double a = std::sqrt(half * half + share) - half;
  return {std::min(round_channels(a * in), layer.inputs), std::min(round_channels(a * out), layer.outputs)};
}

struct Bottleneck {
  Matrix reduce;   // [reduced inputs, inputs], orthonormal rows
  Matrix window;   // [reduced outputs, reduced inputs * window]
  Matrix restore;  // [outputs, reduced outputs], orthonormal columns
};

// The leading directions of the rows, as rows.
Matrix leading_directions(const Matrix& m, int64_t count) {
  const EigenSystem eigen = symmetric_eigen(product(m, transposed(m)));
  Matrix leading(count, m.rows);
  std::copy_n(eigen.vectors.data.begin(), count * m.rows, leading.data.begin());
  return leading;
}

// [a, b * window] as [b, a * window].
Matrix turned_by_window(const Matrix& m, int64_t window) {
  const int64_t b = m.columns / window;
  Matrix turned(b, m.rows * window);
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < b; ++j) std::copy_n(m.row(i) + j * window, window, turned.row(j) + i * window);
  }
  return turned;
}

// One side is projected on its leading directions, then the other on those of what is left, in turns: each
// turn is the best for what the other side is.
Bottleneck factorise(const WeightLayer& layer, const Ranks& ranks) {
  const Matrix by_input = layer.by_input(), by_output = layer.matrix();
  Bottleneck found{.reduce = leading_directions(by_input, ranks.inputs)};
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    const Matrix squeezed = turned_by_window(product(found.reduce, by_input), layer.window);
    const Matrix rows = leading_directions(squeezed, ranks.outputs);
    found.restore = transposed(rows);
    found.reduce = leading_directions(turned_by_window(product(rows, by_output), layer.window), ranks.inputs);
    found.window = product(rows, turned_by_window(product(found.reduce, by_input), layer.window));
  }
  return found;
}

}  // namespace

Result<ReplacementPtr> make_bottleneck(const BlockView& view, double amount) {
  return rewrite_layers(view, [&](LayerRewriter& r, const WeightLayer& layer) -> Result<ValueId> {
    const int64_t side = std::max(layer.inputs, layer.outputs);
    if (!layer.conv || layer.window == 1 || side > kMostChannels) return kNoValue;
    const Ranks ranks = ranks_for(layer, amount);
    const Bottleneck found = factorise(layer, ranks);
    Shape window = layer.weights.shape(), reduce{ranks.inputs, layer.inputs},
          restore{layer.outputs, ranks.outputs};
    window[0] = ranks.outputs;
    window[1] = ranks.inputs;
    for (int axis = 2; axis < window.rank(); ++axis) {
      reduce.push_back(1);
      restore.push_back(1);
    }
    const Attrs pointwise = pointwise_attrs(window.rank() - 2);
    const ValueId first = r.add_weight(layer, "reduce", found.reduce, reduce);
    const ValueId second = r.add_weight(layer, "window", found.window, window);
    const ValueId third = r.add_weight(layer, "restore", found.restore, restore);
    LIMBER_ASSIGN(const ValueId reduced,
                  r.convolve(r.input(layer), first, pointwise, layer.node.name + "/reduce"));
    LIMBER_ASSIGN(const ValueId filtered,
                  r.convolve(reduced, second, window_attrs(layer), layer.node.name + "/window"));
    return r.finish(layer, filtered, third, pointwise);
  });
}

}  // namespace limber
