// A data set that needs no files: ten kinds of shapes, drawn from numbers.
#pragma once

#include "data/dataset.h"
#include "data/shift.h"

namespace limber {

struct SyntheticOptions {
  int size = 32;     // pixels a side, 8..1024
  size_t count = 0;  // images; 0: 10,000 for training, 2,000 for testing
  uint64_t seed = 0;
  Split split = Split::kTrain;  // the parts share no image
  std::vector<Shift> shifts;
};

// Circles, rings, crescents, squares, triangles, stars, crosses, arrows, hearts and bolts of any colour and
// texture, turned and stretched a little, on a background with clutter. Image i depends on seed, split and i
// only and is of class i % 10.
Result<std::unique_ptr<Dataset>> open_synthetic(const SyntheticOptions& options);

// "synthetic", or "synthetic:" and any of the shifts (data/shift.h), size=N, count=N, seed=N with commas
// between.
bool is_synthetic(std::string_view spec);
Result<SyntheticOptions> parse_synthetic(std::string_view spec);

}  // namespace limber
