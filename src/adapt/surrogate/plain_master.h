// A master as what surrogates are cut from: its gates are taken out, and it is known which filters belong to
// which unit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "adapt/master/relevance.h"
#include "adapt/methods/parts.h"
#include "passes/channel_groups.h"

namespace limber::adapt {

// The filters of one convolution that may be dropped: each belongs to a unit of a group.
struct CutLayer {
  std::string weight;             // of the convolution, by name
  std::optional<NormNames> norm;  // that reads the convolution alone
  size_t group = 0;               // in PlainMaster::groups
  int64_t filters = 0;
  int64_t per_unit = 0;
  std::vector<int64_t> of_units;  // filters of unit 0, then those of unit 1 ...
};

// One number for each filter, by layer of PlainMaster::layers. A layer that nothing is known of is empty.
using FilterValues = std::vector<std::vector<double>>;

struct PlainMaster {
  Graph graph;  // without gates; parameters are called as they were
  ChannelGroups groups;
  std::vector<CutLayer> layers;  // in the order of the graph; one of several groups comes once for each
};

// Works on models without gates, too. kInvalidArgument when no convolution has channels that can be dropped.
Result<PlainMaster> open_plain_master(const Graph& graph);

// By group and unit: the sum over the filters that belong to the unit, in all layers.
UnitRelevance sum_by_unit(const PlainMaster& master, const FilterValues& values);

}  // namespace limber::adapt
