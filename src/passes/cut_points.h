// Where a graph can be taken apart: the values that all data pass through.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace limber {

// The values that every path from the inputs to the first output goes through, in topological order. The
// last is that output; the first is the input when all paths start at one.
// Paths carry data: what is computed from parameters and constants alone is none, and neither is what reads
// only the shape of a value whose type is constant. Empty when the output depends on no input.
std::vector<ValueId> cut_points(const Graph& graph);

// What lies between two cut points, `from` before `to`, as a graph of its own: the input is `from` and the
// output is `to`, both under their names. Parameters and states keep their names, so they are those of the
// whole graph; bytes of constants are shared. Other outputs and updates of the graph are left out.
// kInvalidArgument when `to` does not depend on `from`, or on an input past it.
Result<Graph> extract(const Graph& graph, ValueId from, ValueId to);

// By node: is it needed to compute `to` once `from` is there? Fails as extract() does.
Result<std::vector<bool>> nodes_between(const Graph& graph, ValueId from, ValueId to);

}  // namespace limber
