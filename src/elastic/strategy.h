// Fixed choices of tensors to compare with.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace limber {

// Of `tensors`, those of the last layer: all that are read by the last node with a weight matrix or after it.
std::vector<std::string> last_layer(const Graph& graph, const std::vector<std::string>& tensors);

// Scales and shifts of normalisations, biases, and the last layer.
std::vector<std::string> norms_and_biases(const Graph& graph, const std::vector<std::string>& tensors);

}  // namespace limber
