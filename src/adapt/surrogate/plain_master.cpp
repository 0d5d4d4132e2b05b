#include "adapt/surrogate/plain_master.h"

#include <algorithm>

#include "passes/gates.h"

namespace limber::adapt {
namespace {

// Where filters meet their gates, they go on as they are.
Graph without_gates(const Graph& gated) {
  Graph graph = gated;
  std::vector<bool> of_gate(graph.num_values(), false);
  for (const FilterGate& gate : find_gates(graph)) of_gate[gate.value.index] = true;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node node = graph.node(NodeId{n});
    const auto is_gate = [&](ValueId v) { return v != kNoValue && of_gate[v.index]; };
    if (std::none_of(node.inputs.begin(), node.inputs.end(), is_gate)) continue;
    if (node.op == OpKind::kMul && !is_gate(node.inputs[0])) {
      graph.replace_uses(node.outputs[0], node.inputs[0]);
      continue;
    }
    for (const ValueId v : node.outputs) {
      if (v != kNoValue) of_gate[v.index] = true;
    }
  }
  graph.compact();
  return graph;
}

std::optional<NormNames> norm_behind(const Graph& graph, ValueId filters,
                                     const std::vector<std::vector<NodeId>>& readers) {
  if (readers[filters.index].size() != 1 || graph.is_output(filters)) return std::nullopt;
  const Node& node = graph.node(readers[filters.index][0]);
  if (node.op != OpKind::kBatchNorm || node.inputs[0] != filters) return std::nullopt;
  NormNames names;
  std::string* const to[] = {&names.scale, &names.bias, &names.mean, &names.variance};
  for (size_t i = 0; i < 4; ++i) {
    const Value& value = graph.value(node.inputs[i + 1]);
    if (value.role != Role::kParameter && value.role != Role::kState) return std::nullopt;
    *to[i] = value.name;
  }
  return names;
}

}  // namespace

Result<PlainMaster> open_plain_master(const Graph& graph) {
  PlainMaster master{without_gates(graph), {}, {}};
  const Graph& plain = master.graph;
  master.groups = channel_groups(plain);
  const auto readers = plain.readers();
  for (const Node& node : plain.nodes()) {
    if (node.op != OpKind::kConv || plain.value(node.inputs[1]).role != Role::kParameter) continue;
    const ValueId weight = node.inputs[1];
    for (size_t g = 0; g < master.groups.groups.size(); ++g) {
      for (const ChannelSpan& span : master.groups.groups[g].spans) {
        if (span.value != weight || span.axis != 0) continue;
        master.layers.push_back({plain.value(weight).name, norm_behind(plain, node.outputs[0], readers), g,
                                 plain.type(weight).shape.dim(0), span.per_unit, span.indices});
      }
    }
  }
  if (master.layers.empty())
    return invalid("no convolution of '{}' has channels that can be dropped; nothing can be cut from it",
                   graph.name);
  return master;
}

UnitRelevance sum_by_unit(const PlainMaster& master, const FilterValues& values) {
  UnitRelevance sums;
  for (const ChannelGroup& group : master.groups.groups)
    sums.emplace_back(static_cast<size_t>(group.units), 0.0);
  for (size_t l = 0; l < master.layers.size(); ++l) {
    if (values[l].empty()) continue;
    const CutLayer& layer = master.layers[l];
    for (size_t i = 0; i < layer.of_units.size(); ++i) {
      const size_t unit = i / static_cast<size_t>(layer.per_unit);
      sums[layer.group][unit] += values[l][static_cast<size_t>(layer.of_units[i])];
    }
  }
  return sums;
}

}  // namespace limber::adapt
