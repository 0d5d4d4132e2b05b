// How much each unit of a channel group matters, judged by the size of its weights.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "ir/parameters.h"
#include "passes/channel_groups.h"

namespace limber {

enum class WeightNorm : uint8_t { kL1, kL2 };

// One number per unit; only comparable within the group. The mean over the group's weights (parameters of two
// or more axes) of the norm of the unit's part, times the mean over its normalisation scales; each in
// proportion to the average unit, so that tensors of different sizes count alike.
Result<std::vector<double>> unit_scores(const Graph& graph, const ChannelGroup& group,
                                        const Parameters& params, WeightNorm norm = WeightNorm::kL1);

// The `count` units of the highest scores, ascending; of equals the first. REQUIRES: count <= scores.size()
std::vector<int64_t> best_units(const std::vector<double>& scores, size_t count);

// Per group the best `share` of the units, rounded, at least one: what slice_channels() takes.
Result<std::vector<std::vector<int64_t>>> best_share(const Graph& graph, const ChannelGroups& groups,
                                                     const Parameters& params, double share,
                                                     WeightNorm norm = WeightNorm::kL1);

}  // namespace limber
