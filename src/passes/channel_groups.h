// Which channels of a graph must be kept or dropped together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace limber {

// Where the units of a group lie along one axis of a value.
struct ChannelSpan {
  ValueId value;
  int axis = 0;
  int64_t per_unit = 0;          // how many indices each unit has here
  std::vector<int64_t> indices;  // those of unit 0, then those of unit 1 ...; ascending within a unit

  std::span<const int64_t> of(int64_t unit) const {
    return std::span(indices).subspan(static_cast<size_t>(unit * per_unit), static_cast<size_t>(per_unit));
  }
};

// Units that are interchangeable: each has the same number of indices in the same axes of the same values.
// A unit is a channel, or as many as cannot be told apart (the channels of a group of a GroupNorm, the
// features of a head). Any of them may be dropped as long as one is left: what must stay even (groups of a
// convolution, the halves of a channel shuffle) is even unit by unit.
struct ChannelGroup {
  std::string name;  // the first node that makes these channels; unique among the groups
  int64_t units = 0;
  std::vector<ChannelSpan> spans;       // sorted by value, then axis
  std::vector<std::string> parameters;  // those that lose elements with a unit: parameters and states
  // Elements of them that one unit holds, with all other units of all groups in place.
  int64_t elements_per_unit = 0;
};

struct ChannelGroups {
  std::vector<ChannelGroup> groups;  // in the order of the nodes that make them
};

// Taking a unit out leaves every other channel as it is, except that sums over channels (Conv, Gemm, MatMul,
// ReduceSum, the scores of an attention) lose its terms. What that cannot be said of is in no group: channels
// of inputs and outputs, axes of batch and space, axes that are normalised, averaged or searched along, and
// all that meets an operator without a rule. Neither are channels that no parameter makes or reads.
//
// Convolutions of several groups keep whole groups (`groups` shrinks) when there are at least as many of them
// as channels in one, else the same positions of each. An axis that a Reshape cuts into several keeps all but
// one of them whole: heads of an attention, positions of a channel shuffle.
//
// Works on symbolic and on bound graphs, before or after the inference passes.
ChannelGroups channel_groups(const Graph& graph);

}  // namespace limber
