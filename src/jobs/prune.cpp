#include "jobs/prune.h"

#include "passes/channel_groups.h"
#include "passes/channel_rank.h"
#include "passes/slice_channels.h"
#include "variant/elastic_model.h"

namespace limber {
namespace {

// Halvings of the share of channels: networks have groups of some thousand channels, and 2^-14 of one is less
// than a channel.
constexpr int kHalvings = 14;

}  // namespace

Result<Model> prune_to(const Model& model, double share) {
  if (!(share > 0 && share <= 1)) return invalid("{} of the operations; expected above 0, at most 1", share);
  if (share == 1) return model;
  const ChannelGroups groups = channel_groups(model.graph);
  if (groups.groups.empty()) return invalid("the model has no channels that could be taken out");
  LIMBER_ASSIGN(const GraphCost whole, cost_of(model.graph));
  const auto slice = [&](double channels) -> Result<SlicedGraph> {
    LIMBER_ASSIGN(const auto kept, best_share(model.graph, groups, *model.params, channels));
    return slice_channels(model.graph, groups, kept);
  };
  const auto operations = [&](const SlicedGraph& sliced) -> Result<double> {
    LIMBER_ASSIGN(const GraphCost cost, cost_of(sliced.graph));
    return cost.flops / whole.flops;
  };
  double low = 0, high = 1;
  LIMBER_ASSIGN(SlicedGraph best, slice(low));
  LIMBER_ASSIGN(const double least, operations(best));
  if (least > share)
    return invalid("{:.1f} % of the operations; one channel of each layer takes {:.1f} %", 100 * share,
                   100 * least);
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    LIMBER_ASSIGN(SlicedGraph sliced, slice(middle));
    LIMBER_ASSIGN(const double takes, operations(sliced));
    if (takes > share) {
      high = middle;
    } else {
      low = middle;
      best = std::move(sliced);
    }
  }
  Model pruned;
  pruned.params = std::make_shared<Parameters>();
  LIMBER_TRY(slice_parameters(best, *model.params, *pruned.params));
  pruned.graph = std::move(best.graph);
  return pruned;
}

}  // namespace limber
