// A smaller graph: some units of some channel groups kept, the others gone.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/parameters.h"
#include "passes/channel_groups.h"
#include "passes/sliced_tensor.h"

namespace limber {

struct SlicedGraph {
  // Parameters have the names of the whole graph and smaller shapes; constants are sliced already.
  Graph graph;
  std::vector<SlicedTensor> tensors;  // the parameters and states that shrank, in the order of the values
};

// `kept` has one list per group: the units to keep, ascending. With all units kept the graph is the same.
// The result computes what channel_groups() promises. kInvalidArgument when a list is empty, out of order or
// out of range, and when the groups are not those of this graph.
Result<SlicedGraph> slice_channels(const Graph& graph, const ChannelGroups& groups,
                                   std::span<const std::vector<int64_t>> kept);

// Every list holds all units: a start for choosing some.
std::vector<std::vector<int64_t>> all_units(const ChannelGroups& groups);

// Adds to `to` what the sliced graph reads, all of it copied: either may be trained without the other.
Status slice_parameters(const SlicedGraph& sliced, const Parameters& from, Parameters& to);

// Puts `prefix` before the name of every parameter and state, or of those that `which` says, so that a graph
// may stand beside one that it was made from.
void rename_parameters(Graph& graph, std::string_view prefix,
                       const std::function<bool(const Value&)>& which = nullptr);

}  // namespace limber
