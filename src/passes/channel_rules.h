// How an operator ties the channels of its inputs and outputs. Internal to channel_groups.
//
// A rule may tie or pin more than it must, never less: when the tied indices are taken out of all its
// operands (and its attributes are adjusted, see slice_attrs.h), the others must come out the same, except
// that a sum over channels (Conv, MatMul, ReduceSum ...) loses the terms of those taken out.
#pragma once

#include "passes/channel_atoms.h"

namespace limber::channels {

struct Rule {
  const Graph& graph;
  const std::vector<std::vector<NodeId>>& readers;  // Graph::readers()
  ChannelAtoms& atoms;
  const Node& node;

  ValueId input(size_t i) const { return i < node.inputs.size() ? node.inputs[i] : kNoValue; }
  ValueId output(size_t i = 0) const { return i < node.outputs.size() ? node.outputs[i] : kNoValue; }
  int rank(ValueId v) const { return graph.type(v).rank(); }
  // Axes [first, last) of two values of which either may be absent.
  void tie_same(ValueId a, ValueId b, int first, int last) const;
  void pin_from(ValueId v, int first) const;  // axes [first, rank)
  void pin_operands() const;                  // all axes of all inputs and outputs
};

// Channel axis 1 cut into `groups` for the operator: grouped convolutions and transposed ones.
// True: channels go by whole groups, so the weights keep their width. False: every group loses the same
// positions. The finer one of the two.
bool by_whole_groups(int64_t groups, int64_t width);

// Every operator: calls one of those below, or pins what it does not know.
void tie_node(const Rule& rule);

// Products (channel_products.cpp).
void conv(const Rule& rule);
void conv_transpose(const Rule& rule);
void gemm(const Rule& rule);
void matmul(const Rule& rule);
void einsum(const Rule& rule);
void attention(const Rule& rule);

// Movement (channel_movement.cpp, channel_reshape.cpp).
void reshape(const Rule& rule);
void transpose(const Rule& rule);
void expand(const Rule& rule);
void tile(const Rule& rule);
void concat(const Rule& rule);
void split(const Rule& rule);
void slice(const Rule& rule);
void gather(const Rule& rule);
void pad(const Rule& rule);
void resize(const Rule& rule);
void depth_to_space(const Rule& rule);
void space_to_depth(const Rule& rule);

}  // namespace limber::channels
