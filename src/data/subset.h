// Parts of a data set.
#pragma once

#include "data/dataset.h"

namespace limber {

// The images with these indices, in this order, with all of the class names.
// kInvalidArgument when there are none, or the data set has no such image.
Result<std::shared_ptr<const Dataset>> make_subset(std::shared_ptr<const Dataset> whole,
                                                   std::vector<uint32_t> indices);

struct SplitDataset {
  std::shared_ptr<const Dataset> rest, held;
};

// `count` images drawn at random are held, the others are the rest; the same for a seed and a size.
// kInvalidArgument unless both have an image.
Result<SplitDataset> hold_out(std::shared_ptr<const Dataset> whole, size_t count, uint64_t seed);

// A share of each class's images is held, for validation; the same for a seed and the same files, wherever
// and in whatever order they are stored. At least one image of each class stays in the rest; a class of fewer
// than five images may have none held. kInvalidArgument unless 0 < share < 1, or when no class has two
// images.
Result<SplitDataset> hold_out_per_class(std::shared_ptr<const Dataset> whole, double share, uint64_t seed);

// Which images these are, by their names: the same wherever and in whatever order they are stored.
uint64_t digest_names(const Dataset& data);

}  // namespace limber
