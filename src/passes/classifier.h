// What makes a graph a classifier, and how its answers are read.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "ir/graph.h"

namespace limber {

// The model with its logits as the only output: a Softmax or LogSoftmax at the end is left out.
Graph logits_of(const Graph& model);
// Number of classes that logits [N, classes], or [N, classes, 1, 1], have. kInvalidArgument for what is no
// classifier.
Result<int64_t> count_classes(const Graph& model);

// Is this the best of a row of logits, or among the best `count`? Of equal logits the first is best.
bool among_best(std::span<const float> logits, int64_t label, int64_t count);
// The greatest probability of softmax(logits); 0 when one is not a number. REQUIRES: not empty
double confidence_of(std::span<const float> logits);

}  // namespace limber
