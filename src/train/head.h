// Another number of classes for a classifier.
#pragma once

#include "ir/graph.h"
#include "ir/parameters.h"

namespace limber {

// The layer that makes logits from features: a Gemm, a MatMul (with or without an Add behind it) or a Conv.
struct Head {
  ValueId features;  // what it reads: [N, D] or [N, D, ..]
  ValueId weight;
  int weight_axis = 0;  // that counts the classes
  ValueId bias;         // may be kNoValue
  int bias_axis = 0;
  int64_t fan_in = 0;
};

// Behind the layer there may be pooling, a Relu, a change of shape and a Softmax. kUnsupported when `output`
// is made in another way; the message says what was found instead.
Result<Head> find_head(const Graph& graph, ValueId output);

// Replaces the last layer (see find_head) by one of the same kind and the same parameter names for `classes`
// classes, with fresh values (see uniform_init). On failure nothing changes.
Status replace_head(Graph& graph, Parameters& params, int64_t classes, uint64_t seed);

}  // namespace limber
