// The CPU backend's own kernels: vectorised, threaded, for tensors in plain layout.
#pragma once

#include <memory>

#include "ir/graph.h"
#include "runtime/kernel.h"

namespace limber {

// All shapes around `node` are constant in the calls below.
bool own_supports(const Graph& graph, const Node& node);
// The kernel uses the instruction set of simd() now and at most as many threads as max_threads() now. It
// keeps nothing of `graph`. kUnsupported unless own_supports().
Result<std::unique_ptr<Kernel>> own_kernel(const Graph& graph, const Node& node);
// How the channels of an image lie in memory: one plane after the other, side by side in every pixel, or
// side by side in blocks (padded with zeros).
enum class ChannelOrder : uint8_t { kPlanes, kLast, kBlocked8, kBlocked16 };
// The kernel for a node whose images (every input and output of rank 3 and more) all lie in `order`; nullptr
// when there is none. Its other inputs and outputs are plain.
std::unique_ptr<Kernel> own_channel_kernel(const Graph& graph, const Node& node, ChannelOrder order);
// The input that output 0 may be written over, or -1. REQUIRES: own_supports()
int own_may_alias(const Graph& graph, const Node& node);

}  // namespace limber
