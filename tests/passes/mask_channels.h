// The oracle of channel slicing: the whole graph, with the terms of dropped units multiplied by zero wherever
// channels are summed over. Knows operators and masks, nothing of smaller shapes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "ops/einsum.h"
#include "ops/op_def.h"
#include "passes/channel_groups.h"

namespace limber {

using DroppedIndices = std::map<std::pair<ValueId, int>, std::set<int64_t>>;

inline DroppedIndices dropped_indices(const ChannelGroups& groups,
                                      std::span<const std::vector<int64_t>> kept) {
  DroppedIndices dropped;
  for (size_t g = 0; g < kept.size(); ++g) {
    for (const ChannelSpan& span : groups.groups[g].spans) {
      for (int64_t unit = 0; unit < groups.groups[g].units; ++unit) {
        if (std::find(kept[g].begin(), kept[g].end(), unit) != kept[g].end()) continue;
        const auto indices = span.of(unit);
        dropped[{span.value, span.axis}].insert(indices.begin(), indices.end());
      }
    }
  }
  return dropped;
}

// Axes of the first input that the node sums over.
inline std::vector<int> summed_axes(const Graph& graph, const Node& node) {
  const int rank = node.inputs.empty() ? 0 : graph.type(node.inputs[0]).rank();
  switch (node.op) {
    case OpKind::kConv:
    case OpKind::kConvTranspose:
      return {1};
    case OpKind::kGemm:
      return {node.attrs.i("trans_a", 0) != 0 ? 0 : 1};
    case OpKind::kMatMul:
      return {rank > 1 && node.attrs.i("trans_a", 0) != 0 ? rank - 2 : rank - 1};
    case OpKind::kAttention:
      return {rank - 1};
    case OpKind::kReduceSum: {
      const auto& axes = node.attrs.ints("axes");
      return {axes.begin(), axes.end()};
    }
    case OpKind::kEinsum: {
      std::vector<int> ranks, axes;
      for (ValueId v : node.inputs) ranks.push_back(graph.type(v).rank());
      const auto letters = *parse_einsum(node.attrs.s("equation"), ranks);
      for (int i = 0; i < rank; ++i) {
        if (letters.output.find(letters.inputs[0][static_cast<size_t>(i)]) == std::string::npos)
          axes.push_back(i);
      }
      return axes;
    }
    default:
      return {};
  }
}

inline Graph mask_channels(const Graph& graph, const ChannelGroups& groups,
                           std::span<const std::vector<int64_t>> kept) {
  const DroppedIndices dropped = dropped_indices(groups, kept);
  Graph masked = graph;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId{n});
    for (int axis : summed_axes(graph, node)) {
      const auto it = dropped.find({node.inputs[0], axis});
      if (it == dropped.end()) continue;
      const TensorType& type = graph.type(node.inputs[0]);
      std::vector<int64_t> dims(static_cast<size_t>(type.rank() - axis), 1);
      dims[0] = type.shape.dim(axis);
      Tensor mask = *Tensor::zeros({DType::kF32, Shape::of(dims)});
      for (int64_t i = 0; i < dims[0]; ++i)
        mask.data<float>()[static_cast<size_t>(i)] = it->second.contains(i) ? 0 : 1;
      const ValueId factor = masked.add_constant("mask", std::move(mask));
      const auto product = emit(masked, OpKind::kMul, {masked.node(NodeId{n}).inputs[0], factor});
      EXPECT_TRUE(product.ok()) << product.status().message();
      masked.mutable_node(NodeId{n}).inputs[0] = *product;
    }
  }
  masked.compact();
  const Status status = verify(masked);
  EXPECT_TRUE(status.ok()) << status.message();
  return masked;
}

}  // namespace limber
