// The catalogue: cheaper ways to compute what a block computes, started from the weights it has.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ir/graph.h"
#include "ir/parameters.h"
#include "supernet/operators/factorize.h"

namespace limber {

// What an operator replaces: consecutive blocks, each reading what the one before it gives.
struct BlockView {
  std::span<const Graph* const> blocks;
  const Parameters& params;
  FactorCache& factors;  // of weights, so that operators share the work

  const Graph& graph() const { return *blocks.front(); }
};

// A graph of the input type of the first block and the output type of the last. What is in `tensors` is new;
// all other parameters of the graph are the model's, under its names.
struct Replacement {
  Graph graph;
  Parameters tensors;
};
using ReplacementPtr = std::unique_ptr<Replacement>;

struct OperatorDef {
  std::string_view name;  // of the alternatives it makes
  int span;               // how many blocks it stands for
  double amount;          // what it leaves, where that is a question of degree: a share of channels or flops
  // nullptr when there is nothing in the blocks it applies to.
  Result<ReplacementPtr> (*make)(const BlockView& view, double amount);
};

// In the order of preference where not all of them fit. One line here and one function make an operator.
std::span<const OperatorDef> all_operators();

// The parameters of the replacement under names of their own, `prefix` in front: tensors that were the
// model's become copies, so that training them leaves the model as it is.
Status detach(Replacement& replacement, const Parameters& params, std::string_view prefix);

// --- what the catalogue holds ------------------------------------------------------------------------------

// The input, where the block adds to it and is of the same type: what is left without the block's own part.
Result<ReplacementPtr> make_skip(const BlockView& view, double amount);
// The best `amount` of the channels that are neither the block's input nor its output.
Result<ReplacementPtr> make_shrunk(const BlockView& view, double amount);
// The one block that changes the type stands for all; without such a one the largest does. At most one may.
Result<ReplacementPtr> make_merged(const BlockView& view, double amount);

// Those below replace layers (convolutions without groups, products with a weight matrix) that take at least
// a tenth of the work of the block's largest, and leave everything else as it is.

// Two layers with `amount` of the flops and the best approximation of the weights that such two have.
Result<ReplacementPtr> make_low_rank(const BlockView& view, double amount);
// A window per channel, then 1x1: of all such pairs the nearest to the weights.
Result<ReplacementPtr> make_depthwise_separable(const BlockView& view, double amount);
// Convolutions of 1 / `amount` groups. Between two of them the channels are shuffled.
Result<ReplacementPtr> make_grouped_shuffle(const BlockView& view, double amount);
// 1x1 to fewer channels, then half of the outputs by 1x1 and half by the window, with `amount` of the flops.
// Only for convolutions without a bias of their own, as those in front of a normalisation are.
Result<ReplacementPtr> make_fire(const BlockView& view, double amount);
// 1x1 to fewer channels, the window between these, 1x1 to the outputs, with `amount` of the flops, starting
// near the best approximation of the weights that such three have.
Result<ReplacementPtr> make_bottleneck(const BlockView& view, double amount);
// A few new channels by the window, then 1x1 over them together with the layer's own input; with `amount` of
// the flops and the best approximation of the weights: what the middle of the window reads is exact.
Result<ReplacementPtr> make_dense_connection(const BlockView& view, double amount);

}  // namespace limber
