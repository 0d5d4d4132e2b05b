// One factory per family of operators; own_kernels.cpp asks the right one. Each returns nullptr for a node
// it does not cover: a type, a mode, an axis.
#pragma once

#include "backend/cpu/simd/loops.h"
#include "backend/cpu/simd/own_kernels.h"
#include "backend/cpu/simd/simd.h"
#include "base/parallel.h"
#include "ir/graph.h"
#include "runtime/kernel.h"

namespace limber::own {

using KernelPtr = std::unique_ptr<Kernel>;

KernelPtr make_unary(const Graph& graph, const Node& node);
KernelPtr make_cast(const Graph& graph, const Node& node);
KernelPtr make_binary(const Graph& graph, const Node& node);
KernelPtr make_where(const Graph& graph, const Node& node);
KernelPtr make_softmax(const Graph& graph, const Node& node);
KernelPtr make_batch_norm(const Graph& graph, const Node& node);
KernelPtr make_layer_norm(const Graph& graph, const Node& node);
KernelPtr make_group_norm(const Graph& graph, const Node& node);  // also InstanceNorm
KernelPtr make_lrn(const Graph& graph, const Node& node);
KernelPtr make_reduce(const Graph& graph, const Node& node);     // also the global average and max pools
KernelPtr make_arg(const Graph& graph, const Node& node);        // ArgMax, ArgMin
KernelPtr make_transpose(const Graph& graph, const Node& node);  // also DepthToSpace, SpaceToDepth
KernelPtr make_concat(const Graph& graph, const Node& node);
KernelPtr make_split(const Graph& graph, const Node& node);
KernelPtr make_strided_copy(const Graph& graph, const Node& node);  // Slice, Expand, Tile
KernelPtr make_gather(const Graph& graph, const Node& node);
KernelPtr make_pad(const Graph& graph, const Node& node);
KernelPtr make_resize(const Graph& graph, const Node& node);
KernelPtr make_attention(const Graph& graph, const Node& node);
KernelPtr make_activation_backward(const Graph& graph, const Node& node);
KernelPtr make_softmax_backward(const Graph& graph, const Node& node);
KernelPtr make_layer_norm_backward(const Graph& graph, const Node& node);
KernelPtr make_gather_backward(const Graph& graph, const Node& node);
KernelPtr make_sgd(const Graph& graph, const Node& node);
KernelPtr make_adam(const Graph& graph, const Node& node);

// In any order of channels. REQUIRES: all_f32
KernelPtr make_batch_norm_training(const Graph& graph, const Node& node, ChannelOrder order);
KernelPtr make_batch_norm_backward(const Graph& graph, const Node& node, ChannelOrder order);
KernelPtr make_batch_norm_apply(const Graph& graph, const Node& node, ChannelOrder order);
KernelPtr make_max_pool_backward(const Graph& graph, const Node& node, ChannelOrder order);
KernelPtr make_average_pool_backward(const Graph& graph, const Node& node, ChannelOrder order);
// Channels of f32 images, by i64 indices; nullptr for every other Gather.
KernelPtr make_channel_gather(const Graph& graph, const Node& node, ChannelOrder order);

// Elements a thread should have at least before another one is woken up: 64 KB of floats, some microseconds
// of work, about what waking it takes.
inline constexpr int64_t kGrain = 16384;

inline bool has_input(const Node& node, int i) {
  return static_cast<size_t>(i) < node.inputs.size() && node.inputs[static_cast<size_t>(i)] != kNoValue;
}
inline bool has_output(const Node& node, int i) {
  return static_cast<size_t>(i) < node.outputs.size() && node.outputs[static_cast<size_t>(i)] != kNoValue;
}
// REQUIRES: present
inline const TensorType& input_type(const Graph& graph, const Node& node, int i) {
  return graph.type(node.inputs[static_cast<size_t>(i)]);
}
inline const TensorType& output_type(const Graph& graph, const Node& node, int i = 0) {
  return graph.type(node.outputs[static_cast<size_t>(i)]);
}
// Every present input and output is f32.
bool all_f32(const Graph& graph, const Node& node);

// Product of the dimensions [from, to).
inline int64_t product(const Shape& shape, int from, int to) {
  int64_t n = 1;
  for (int axis = from; axis < to; ++axis) n *= shape.dim(axis);
  return n;
}

// Work of `rows` equal rows: how many of them a thread should have at least.
inline int64_t row_grain(int64_t elements_per_row, int64_t grain = kGrain) {
  return elements_per_row <= 0 ? grain : std::max<int64_t>(1, grain / elements_per_row);
}

}  // namespace limber::own
