// Starting values of parameters.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/graph.h"
#include "ir/parameters.h"

namespace limber {

// Uniform in +-1/sqrt(fan_in), as PyTorch starts linear layers. What comes out depends on seed, name and
// type.
Result<Tensor> uniform_init(const TensorType& type, int64_t fan_in, std::string_view name, uint64_t seed);

// New values for every parameter whose use is known: normal with variance 2 / fan_in for convolutions,
// uniform_init for products, what does nothing for normalisations (running statistics included), zeros for
// what is added to activations, or a normal of deviation 0.02 where that has two axes or more.
// Returns how many tensors were set.
Result<int64_t> initialise(const Graph& graph, Parameters& params, uint64_t seed);

}  // namespace limber
