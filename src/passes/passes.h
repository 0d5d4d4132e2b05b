// Graph -> graph transformations for inference. Every pass keeps what the graph computes (up to the
// rounding of reordered arithmetic), its inputs, and the names, types and order of its outputs.
//
// Bytes of parameters are not known here: what depends on them alone (folded weights) is written as
// ordinary nodes, which a plan evaluates once. Values that depend only on constants and on parameters and
// state that the graph does not update are called static below.
#pragma once

#include <span>
#include <string_view>

#include "ir/graph.h"

namespace limber {

struct Pass {
  std::string_view name;
  Status (*run)(Graph& graph);
};

// Runs the passes in order. In builds with LIMBER_CHECKS every pass is followed by verify(); a failure
// is kInternal and holds the text of the graph before and after.
Status run_passes(Graph& graph, std::span<const Pass> passes);

// The sequence for inference, repeated until nothing changes. Works on bound and on symbolic graphs.
Status optimize_for_inference(Graph& graph);

// Nodes of small constants become constants.
Status fold_constants(Graph& graph);
// Drops nodes that do nothing (Identity, a Cast, Reshape, Transpose, Slice, Pad ... that changes nothing)
// and arithmetic that does nothing (x*1, x+0); merges chains of Reshape and of Transpose; writes x^2 as
// x*x, a division by a power of two as a product, limits (Max, Min) as Relu or Clip. Drops optional outputs
// and nodes nobody reads.
Status simplify(Graph& graph);
// Equal operators of equal inputs and attributes are computed once.
Status merge_common(Graph& graph);

// Gemm -> MatMul with bias.
Status gemm_to_matmul(Graph& graph);
// A Transpose of the last two axes in front of a MatMul -> trans_a, trans_b.
Status fold_transpose_matmul(Graph& graph);
// A mean or maximum over all of space, and a window as large as it -> the global pools. After fuse_norms,
// which looks for means.
Status use_global_pools(Graph& graph);
// A Pad with zeros in front of a Conv or AveragePool -> its own pads.
Status fold_pad(Graph& graph);
// y*s + t with static per-channel s, t (BatchNorm, or Mul, Div, Add, Sub) into the weights and bias of
// the Conv, ConvTranspose, MatMul or normalisation that makes y, when nobody else reads y; and into those
// of an unpadded Conv that reads it.
Status fold_batch_norm(Graph& graph);

// Spelled-out activations -> one operator: Silu, HardSigmoid, HardSwish, Gelu (both kinds), Mish, Softplus.
Status fuse_activation_patterns(Graph& graph);
// ReduceMean, Sub, square, ReduceMean, Add, Sqrt, Div over the last axes -> LayerNorm; over axis 1 the
// same between two Transposes. InstanceNorm of reshaped groups -> GroupNorm.
Status fuse_norms(Graph& graph);
// softmax(q k^T * scale + mask) v -> Attention.
Status fuse_attention(Graph& graph);

// A Gather of rows or columns of a product, or of output channels of a convolution's backward-weights, that
// nobody else reads: the product, or the gradient, of gathered operands, which does only that part of the
// work.
Status narrow_gradients(Graph& graph);

// An activation after a Conv or MatMul that nobody else reads -> its `act`.
Status fuse_activation(Graph& graph);
// Add(y, other) of equal shapes -> residual input of the Conv or MatMul that makes y. When both
// operands could take the other, the later one does.
Status fuse_residual(Graph& graph);

}  // namespace limber
