// Parameters that are one only by accident.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/parameters.h"

namespace limber {

struct ParameterCopy {
  std::string name, of;
};

// Exporters write equal tensors once, so that untrained biases and scales of unrelated layers come as one
// parameter, whose channels then stand or fall together. Gives every reader but the first of a vector (a
// parameter of one axis) one of its own, and likewise of a constant of several elements. Weights, which are
// shared on purpose, and what the graph updates stay shared. Returns the new parameters.
std::vector<ParameterCopy> unshare_parameters(Graph& graph);

// Adds the new parameters, with the tensors of those they are copies of.
Status copy_parameters(std::span<const ParameterCopy> copies, Parameters& params);

}  // namespace limber
