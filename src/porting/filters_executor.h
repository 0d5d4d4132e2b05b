// Goals are kept by fewer filters: normalisation scales are made sparse while the network trains, weighed by
// what their filters cost, and the least of them go; step by step, with training in between. After MorphNet.
#pragma once

#include <functional>

#include "porting/executor.h"
#include "porting/workshop.h"

namespace limber {

struct FiltersOptions {
  double shrink = 0.8;       // of what is above its limit so much is left after a step, at least
  double step_images = 0.5;  // share of the images that is trained on in a step
  int64_t epochs = 3;        // of training once the limits are kept, where half or more is gone; else less
  double sparsity = 0.3;     // share of its mean that the costliest group's scales lose in a step's training
  uint64_t seed = 0;
  std::function<void(std::string_view what)> progress;
};

// kInvalidArgument when the model has no filters that could be taken out. The workshop must outlive it.
Result<std::unique_ptr<Executor>> make_filters_executor(const Model& model, const Workshop& shop,
                                                        FiltersOptions options);

}  // namespace limber
