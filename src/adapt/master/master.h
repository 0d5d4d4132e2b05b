// A master: a model with a gate behind each of its filters, from which networks of any size are cut.
#pragma once

#include <span>
#include <vector>

#include "adapt/strategy.h"
#include "passes/channel_groups.h"
#include "passes/gates.h"

namespace limber::adapt {

// Filters of one gate that belong to units of one group.
struct GatedSpan {
  size_t gate = 0;               // into Master::gates
  int64_t per_unit = 0;          // filters of each unit
  std::vector<int64_t> filters;  // those of unit 0, then those of unit 1 ...

  std::span<const int64_t> of(int64_t unit) const {
    return std::span(filters).subspan(static_cast<size_t>(unit * per_unit), static_cast<size_t>(per_unit));
  }
};

// What belongs to the graph alone; weights go beside it. A plain copyable value.
struct Master {
  Graph graph;                    // with gates, as it is saved: its batch is open
  std::vector<FilterGate> gates;  // in the order of the graph
  // The channel groups that have a gate. A unit is kept or dropped everywhere at once: give these groups to
  // slice_channels(), with one list of units for each.
  ChannelGroups groups;
  std::vector<std::vector<GatedSpan>> spans;  // by group
};

// Finds gates again by the names of their parameters. kInvalidArgument when there are none, or none of them
// stands behind channels that can be dropped.
Result<Master> open_master(const Graph& graph);

// A graph with gates of its own, which `weights` gets, open: it computes what it did, to the bit.
// kInvalidArgument when it has gates already, or nothing that could have some.
Result<Master> make_master(const Graph& graph, Parameters& weights);

}  // namespace limber::adapt
