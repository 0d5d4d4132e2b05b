// What a graph costs, estimated without running it.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace limber {

// Conv, ConvTranspose, Gemm or MatMul with a static second operand. `statics` are static_values() of the
// graph.
bool is_layer(const Graph& graph, const Node& node, const std::vector<bool>& statics);

// Elements of all parameters and states.
int64_t parameter_elements(const Graph& graph);

// Floating-point operations of one run, with 1 for every symbolic dimension. What depends on parameters alone
// is not counted: a plan computes it once.
Result<double> graph_flops(const Graph& graph);

// A number of channels near `wanted`, at least 1, that kernels like: they work by the eight or sixteen, and
// what is no such number often takes a slow way.
int64_t round_channels(double wanted);

// The graph with 1 for every symbolic dimension: one sample.
Result<Graph> bind_one(const Graph& graph);

}  // namespace limber
