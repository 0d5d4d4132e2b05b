// Convolutions and matrix products: from an IR node to the ways oneDNN can run it.
#pragma once

#include <optional>

#include "backend/cpu/tuner.h"

namespace limber {

// A node as a convolution or a matrix product; which of the two it is, and its fixed part. Formats and
// variants are filled in per candidate.
struct Layer {
  std::optional<onednn::Convolution> conv;
  std::optional<onednn::MatMul> matmul;
  TensorType weights;  // their type, or that of their gradient
  bool has_residual = false;
  bool cold_weights = false;    // the network's weights do not fit the inner caches: see time_kernel
  bool weights_change = false;  // from run to run; or they are what is made
  double flops = 0;
  double bytes = 0;
};

inline onednn::Pass pass_of(const Layer& layer) {
  return layer.conv ? layer.conv->pass : onednn::Pass::kForward;
}

// nullopt when oneDNN cannot run this node as one primitive.
std::optional<Layer> describe_layer(const Graph& graph, const Node& node, bool weights_static);

// Variants of a layer.
inline constexpr int kDirect = 0, kWinograd = 1, kOwnWinograd = 2;        // convolution
inline constexpr int kMatMul = 0, kInnerProduct = 1, kAsConvolution = 2;  // matrix product

// The best way per pair of formats: measured when `tune`, otherwise estimated from oneDNN's first choice.
// What was measured before is taken from the tuner either way. Never empty on success.
Result<std::vector<Timing>> layer_timings(const Layer& layer, onednn::Library& library, Tuner& tuner,
                                          bool tune, int threads);

// The primitive of one of them.
Result<onednn::Compiled> make_layer(const Layer& layer, const Timing& timing, onednn::Library& library);

}  // namespace limber
