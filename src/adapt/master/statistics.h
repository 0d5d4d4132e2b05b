// Running statistics of a master, or of a network cut from it, measured anew.
#pragma once

#include <vector>

#include "adapt/strategy.h"
#include "data/loader.h"

namespace limber::adapt {

// Images enough to measure statistics on: the first batches of the loader's epoch 0.
Result<std::vector<Tensor>> statistics_images(Loader& loader);

// The running statistics of all batch normalisations become those of these images, all together, each layer
// behind layers that normalise by their batch; everything else stays as it is. Nothing happens where the
// model has none. REQUIRES: batches of one size
Status measure_statistics(const AdaptedModel& model, const std::vector<Tensor>& batches);

}  // namespace limber::adapt
