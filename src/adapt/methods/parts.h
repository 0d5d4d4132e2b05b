// The parts of a classifier that methods treat apart.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/parameters.h"

namespace limber::adapt {

// The parameters of a batch normalisation, by name.
struct NormNames {
  std::string scale, bias, mean, variance;
};

// Those whose scale, bias and statistics are all parameters or states, in the order of the graph. Works on
// models as they are loaded and as they are prepared for training.
std::vector<NormNames> norms_of(const Graph& graph);
// kInvalidArgument when there is none: `method` has nothing to change then.
Result<std::vector<NormNames>> some_norms_of(const Graph& graph, std::string_view method);
std::vector<std::string> affine_names(const std::vector<NormNames>& norms);

// Weight and bias of the layer that makes the logits.
Result<std::vector<std::string>> head_names(const Graph& logits);

// Lets go of the state of optimisers.
void forget_optimizer(Parameters& params);

}  // namespace limber::adapt
