// Another number of classes for a classifier.
#pragma once

#include "ir/graph.h"
#include "ir/parameters.h"

namespace limber {

// Replaces the last layer (Gemm, MatMul with or without an Add behind it, or Conv) by one of the same kind
// and the same parameter names for `classes` classes, with fresh values (see uniform_init). Behind it there
// may be pooling, a Relu, a change of shape and a Softmax. Fails, changing nothing, when the first output
// is made in another way; the message says what was found instead.
Status replace_head(Graph& graph, Parameters& params, int64_t classes, uint64_t seed);

}  // namespace limber
