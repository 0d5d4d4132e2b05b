// Memory for time: activations that are computed again for the backward pass instead of being kept.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace limber {

// Values that nodes before `backward` make with little work and that nodes from it on read: the candidates,
// largest first. REQUIRES: constant shapes
std::vector<ValueId> recomputable(const Graph& graph, NodeId backward);

// Readers from `backward` on get a copy of each value, made just before the first of them. What the graph
// computes stays the same, to the bit.
Status recompute(Graph& graph, std::span<const ValueId> values, NodeId backward);

}  // namespace limber
