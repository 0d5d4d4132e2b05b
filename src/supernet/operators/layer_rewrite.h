// Replacing the layers inside a block: what the operators that change layers have in common.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "passes/graph_copy.h"
#include "supernet/operators/operators.h"

namespace limber {

// A convolution without groups, or a product with a weight matrix, that is worth replacing.
struct WeightLayer {
  const Graph& graph;  // of the block
  const Node& node;
  std::string weight;  // the parameter's name
  Tensor weights;      // f32
  bool conv = false;
  bool turned = false;              // a product whose parameter is stored as [outputs, inputs]
  int64_t inputs = 0, outputs = 0;  // channels or features
  int64_t window = 1;               // elements of the kernel

  // weights as [outputs, inputs * window] for a convolution, [outputs, inputs] for a product.
  Matrix matrix() const;
  // Of a convolution, as [inputs, outputs * window]: what each input gives to all outputs.
  Matrix by_input() const;
  // Keyed by the parameter, of matrix() and of by_input().
  const Factors& factors(FactorCache& cache) const;
  const Factors& input_factors(FactorCache& cache) const;
  // A window of odd sizes whose middle lies on the place it is computed for: then 1x1 with the same strides
  // gives outputs of the same size. REQUIRES: conv
  bool is_centred() const;
  int64_t input_places() const;  // that a convolution reads for each place of its output: what strides say
};

// Builds the block anew.
class LayerRewriter {
 public:
  LayerRewriter(const BlockView& view, Replacement& result);

  // The value in the new graph that the layer reads.
  ValueId input(const WeightLayer& layer) { return copy_.value(layer.node.inputs[0]); }
  // A parameter of the new graph, called as the layer's weight with a suffix.
  ValueId add_weight(const WeightLayer& layer, std::string_view suffix, const Matrix& values, Shape shape);
  // A convolution that reads `x` with these attributes and none of bias, residual and activation.
  Result<ValueId> convolve(ValueId x, ValueId w, Attrs attrs, std::string_view name);
  // The layer with another input and weight in place of its own; bias, residual and activation as they were.
  Result<ValueId> finish(const WeightLayer& layer, ValueId x, ValueId w, Attrs attrs);
  Graph& graph() { return result_.graph; }

 private:
  friend Result<ReplacementPtr> rewrite_layers(
      const BlockView& view, const std::function<Result<ValueId>(LayerRewriter&, const WeightLayer&)>& rule);

  const BlockView& view_;
  Replacement& result_;
  GraphCopy copy_;
};

// Strides, pads and dilations of a 1x1 window that reads every place once.
Attrs pointwise_attrs(int spatial_rank);
// Those of the layer's own window, with groups and without an activation.
Attrs window_attrs(const WeightLayer& layer, int64_t groups = 1);

// The block with `rule` applied to every layer with at least a tenth of the work of the largest: it gives the
// value that takes the place of the layer's output, or kNoValue to leave the layer as it is. nullptr when all
// stay.
using LayerRule = std::function<Result<ValueId>(LayerRewriter&, const WeightLayer&)>;
Result<ReplacementPtr> rewrite_layers(const BlockView& view, const LayerRule& rule);

}  // namespace limber
