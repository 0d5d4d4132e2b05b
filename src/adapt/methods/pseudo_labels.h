// Classes guessed from how images cluster.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace limber::adapt {

// The class of each image, as SHOT guesses it: each class has a centroid, the mean of the images' features
// (with a 1 behind them, at length 1) weighted by how likely the model finds it; an image belongs to the
// nearest by angle. Centroids of those members, once more, give the final classes. Only classes that the
// model predicts of some image are given. REQUIRES: logits f32[n,classes,..], features f32[n,D], n > 0
std::vector<int64_t> pseudo_labels(const Tensor& logits, const Tensor& features);

}  // namespace limber::adapt
