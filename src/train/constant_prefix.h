// The part of a training step whose result is the same in every epoch.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace limber {

// A step in two parts: `prefix` computes values from the images and from parameters that the step does not
// change; `rest` has an input for each of them, of the name of the prefix's output, and does everything else.
struct SplitStep {
  Graph prefix, rest;
};

// Nothing when no operator that computes something can be split off, or a value to hand over has no axis for
// the images of the batch. REQUIRES: the first input is a batch of images
std::optional<SplitStep> split_constant_prefix(const Graph& step);

}  // namespace limber
