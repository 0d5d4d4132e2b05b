// Gradients as nodes: what turns a graph that computes a loss into one that can train.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace limber {

struct Gradients {
  std::vector<ValueId> of;  // by target; kNoValue when the loss does not depend on it
};

// Appends nodes that compute d loss / d target; nothing is computed that no target needs. They come in
// the reverse order of the nodes they serve and are named after them ("conv1/grad"). Optional outputs
// that gradients need (statistics of normalisations) are added to the nodes that have them.
// The loss is a floating-point number (one element). On failure the graph is unchanged; operators
// without a gradient are named all at once. REQUIRES: constant shapes
Result<Gradients> differentiate(Graph& graph, ValueId loss, std::span<const ValueId> targets);

}  // namespace limber
