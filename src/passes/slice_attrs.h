// Attributes of operators that speak of channels. Internal to slice_channels.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace limber {

// Indices that are left, by value and axis; axes that keep everything are absent.
using KeptIndices = std::map<std::pair<ValueId, int>, std::vector<int64_t>>;

// The attributes of `node`, a node of the unsliced `graph`, when only `kept` is left.
Attrs sliced_attrs(const Graph& graph, const Node& node, const KeptIndices& kept);

// What the constant list of a Gather must hold when only `kept` of what it points into is left.
Tensor renumbered(const Tensor& indices, int64_t size, const std::vector<int64_t>& kept);

}  // namespace limber
