// Graphs put together from blocks: graphs of one input and one output.
// Parameters of equal name are one parameter. kInvalidArgument when they differ in type, when a name is a
// parameter here and an input there, and when what is joined has different types.
#pragma once

#include <span>

#include "ir/graph.h"

namespace limber {

// The graph with `block` in place of everything between two of its cut points. Inputs and outputs stay as
// they are. What other outputs need of the replaced part stays beside the block. Nodes that no output
// depends on are gone, as after Graph::compact().
// splice(graph, from, to, extract(graph, from, to)) is the graph again, with an equal hash; only what the
// part computes from parameters and the rest reads too is then computed twice.
Result<Graph> splice(const Graph& graph, ValueId from, ValueId to, const Graph& block);

// Each block reads what the one before it gives. The name and the input are the first block's, the output
// is called as the last one's. REQUIRES: not empty
Result<Graph> chain(std::span<const Graph* const> blocks);

}  // namespace limber
