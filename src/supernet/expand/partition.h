// A model as a chain of blocks: what lies between cut points, in sizes that are worth replacing.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace limber {

struct PartitionOptions {
  // A block holds at most this share of the model's parameters where a cut allows it.
  double gamma = 0.25;
  // So many layers (convolutions, matrix products) that no residual connection ties together make a block.
  int max_layers = 3;
};

struct BlockRange {
  ValueId from, to;
  int64_t parameters = 0;  // elements of all parameters and states that are read in between
  bool fixed = false;      // the stem or the classifier: nothing stands in for it
};

// Blocks of one input and one output each, from the model's input to its output; the first starts at the
// input and each other where the one before it ends.
//   (1) No cut parts what the passes for inference fuse: the optimised parts have as many nodes as the whole.
//   (2) What has no weights (pooling, reshaping, a lone activation) belongs to a neighbour.
//   (3) What a residual connection or a branch encloses stays together; a run of single layers is cut where
//       the data are smallest.
// kUnsupported, saying why, when the model has several inputs or outputs or no block that could be replaced.
Result<std::vector<BlockRange>> partition(const Graph& model, const PartitionOptions& options = {});

}  // namespace limber
