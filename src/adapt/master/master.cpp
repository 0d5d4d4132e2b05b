#include "adapt/master/master.h"

#include <map>

namespace limber::adapt {
namespace {

// The filters that a group has in each gate, by the indices of its biases.
std::vector<GatedSpan> gated_spans(const ChannelGroup& group, const std::map<ValueId, size_t>& gate_of_bias) {
  std::vector<GatedSpan> spans;
  for (const ChannelSpan& span : group.spans) {
    if (const auto gate = gate_of_bias.find(span.value); gate != gate_of_bias.end())
      spans.push_back({gate->second, span.per_unit, span.indices});
  }
  return spans;
}

}  // namespace

Result<Master> open_master(const Graph& graph) {
  Master master{graph, find_gates(graph), {}, {}};
  if (master.gates.empty())
    return invalid("'{}' has no gates; make a master of it: limber elastify --gates", graph.name);
  std::map<ValueId, size_t> gate_of_bias;
  for (size_t i = 0; i < master.gates.size(); ++i) gate_of_bias[*graph.find(master.gates[i].bias)] = i;
  ChannelGroups all = channel_groups(graph);
  for (ChannelGroup& group : all.groups) {
    std::vector<GatedSpan> spans = gated_spans(group, gate_of_bias);
    if (spans.empty()) continue;
    master.spans.push_back(std::move(spans));
    master.groups.groups.push_back(std::move(group));
  }
  if (master.groups.groups.empty())
    return invalid("no channel of '{}' that has a gate can be dropped; a master is of no use", graph.name);
  return master;
}

Result<Master> make_master(const Graph& graph, Parameters& weights) {
  if (!find_gates(graph).empty()) return invalid("'{}' has gates already; it is a master", graph.name);
  Graph gated = graph;
  LIMBER_ASSIGN(const std::vector<FilterGate> gates, insert_gates(gated));
  LIMBER_TRY(open_gates(gated, gates, weights));
  return open_master(gated);
}

}  // namespace limber::adapt
