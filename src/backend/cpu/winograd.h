// Convolutions with 3x3 taps by our own Winograd kernels: for the few channels and many pixels that oneDNN's
// are slow on or do not cover, and for gradients.
#pragma once

#include <optional>

#include "backend/cpu/onednn.h"

namespace limber {

// nullopt for another kernel size, a stride, dilation or groups, for channels that are not blocks of 16,
// formats other than channels-last and blocks, or an activation other than Relu. Weights are plain, and so is
// their gradient. The kernel uses the instruction set of simd() now and at most as many threads as
// max_threads() now.
std::optional<onednn::Compiled> winograd_layer(const onednn::Convolution& spec);
bool has_winograd(const onednn::Convolution& spec);

}  // namespace limber
