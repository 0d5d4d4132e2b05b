// Memory for time: activations that are computed again for the backward pass instead of being kept.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace limber {

// Values that nodes from `backward` on read and that can be made again for them. The first `cheap` of them
// take one pass over memory each, the others a few, or a whole layer. Each part has the largest first. Any
// number of them from the front may be given to recompute().
struct Recomputable {
  std::vector<ValueId> values;
  size_t cheap = 0;
};
// REQUIRES: constant shapes
Recomputable recomputable(const Graph& graph, NodeId backward);

// Readers from `backward` on get a copy of each value, made just before the first of them from what is kept.
// What the graph computes stays the same, to the bit.
Status recompute(Graph& graph, std::span<const ValueId> values, NodeId backward);

}  // namespace limber
