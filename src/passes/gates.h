// Gates in front of filters: how much each matters for this very image, as nodes of the graph.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/parameters.h"

namespace limber {

struct GateOptions {
  // Of each gated layer, for each image, the filters with the largest gates are kept and the others are zero:
  // this share of them, rounded up. Nothing: every gate counts as it is.
  std::optional<double> kept;
};

struct FilterGate {
  std::string layer;         // the weights of the convolution, by name
  std::string weight, bias;  // of the gate: f32[C,O] and f32[O] for C input channels and O filters
  ValueId value;             // f32[N,O], 0 or more; after choosing, where filters are chosen
};

// Behind every convolution with weights of its own, and behind the batch normalisation that reads it alone if
// there is one, every channel is multiplied by its gate relu(mean(|x|) * weight + bias), with the mean over
// space of what the convolution reads. New parameters are named after the convolution's weights,
// "gate/<weights>/weight" and "gate/<weights>/bias". kInvalidArgument when there is no such convolution, or
// when the share is not above 0 and at most 1; the graph is unchanged then.
Result<std::vector<FilterGate>> insert_gates(Graph& graph, const GateOptions& options = {});

// The gates that insert_gates() put in, found again by these names: in a graph that was saved, or sliced. Of
// gates that choose, their value before. Empty when there are none.
std::vector<FilterGate> find_gates(const Graph& graph);

// Sets weights to 0 and biases to 1: every gate is 1, and the graph computes what it did before, to the bit.
Status open_gates(const Graph& graph, const std::vector<FilterGate>& gates, Parameters& params);

}  // namespace limber
