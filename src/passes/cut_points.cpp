#include "passes/cut_points.h"

#include <algorithm>

#include "passes/graph_copy.h"

namespace limber {
namespace {

// By value: does it depend on the data of an input?
std::vector<bool> data_values(const Graph& graph) {
  std::vector<bool> data(graph.num_values(), false);
  for (ValueId v : graph.inputs()) data[v.index] = true;
  for (const Node& node : graph.nodes()) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [&](ValueId v) { return v != kNoValue && data[v.index]; });
    if (!any || is_known_shape(graph, node)) continue;
    for (ValueId v : node.outputs) {
      if (v != kNoValue) data[v.index] = true;
    }
  }
  return data;
}

constexpr uint32_t kNever = 0;

// By value: one more than the last node that reads it on a path to `output`; kNever for values on none.
std::vector<uint32_t> last_readers(const Graph& graph, ValueId output, const std::vector<bool>& data) {
  std::vector<uint32_t> last(graph.num_values(), kNever);
  last[output.index] = static_cast<uint32_t>(graph.num_nodes()) + 1;
  for (auto n = static_cast<uint32_t>(graph.num_nodes()); n-- > 0;) {
    const Node& node = graph.node(NodeId{n});
    const bool on_path = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) {
      return v != kNoValue && data[v.index] && last[v.index] != kNever;
    });
    if (!on_path) continue;
    for (ValueId v : node.inputs) {
      if (v != kNoValue && data[v.index]) last[v.index] = std::max(last[v.index], n + 1);
    }
  }
  return last;
}

}  // namespace

// A value is a cut when, once it is made, it is the only one on a path that anybody still reads: what lies
// on a path is made from a cut point or is needed for it, so any topological order shows it.
std::vector<ValueId> cut_points(const Graph& graph) {
  if (graph.outputs().empty()) return {};
  const std::vector<bool> data = data_values(graph);
  const std::vector<uint32_t> last = last_readers(graph, graph.outputs()[0].value, data);
  const auto on_path = [&](ValueId v) { return v != kNoValue && data[v.index] && last[v.index] != kNever; };

  std::vector<ValueId> cuts;
  size_t open = 0;
  for (ValueId v : graph.inputs()) open += on_path(v);
  for (ValueId v : graph.inputs()) {
    if (open == 1 && on_path(v)) cuts.push_back(v);
  }
  std::vector<uint32_t> closing(graph.num_nodes() + 2, 0);  // by node + 1: values it is the last to read
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    if (on_path(ValueId{v})) ++closing[last[v]];
  }
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    ValueId made = kNoValue;
    for (ValueId v : graph.node(NodeId{n}).outputs) {
      if (!on_path(v)) continue;
      made = v;
      ++open;
    }
    open -= closing[n + 1];
    if (made != kNoValue && open == 1) cuts.push_back(made);
  }
  return cuts;
}

Result<std::vector<bool>> nodes_between(const Graph& graph, ValueId from, ValueId to) {
  if (from.index >= graph.num_values() || to.index >= graph.num_values())
    return invalid("graph '{}' has no such value", graph.name);
  const std::string &from_name = graph.value(from).name, &to_name = graph.value(to).name;
  if (from == to) return invalid("nothing lies between '{}' and itself", to_name);
  std::vector<bool> wanted(graph.num_values(), false), nodes(graph.num_nodes(), false);
  wanted[to.index] = true;
  for (auto n = static_cast<uint32_t>(graph.num_nodes()); n-- > 0;) {
    const Node& node = graph.node(NodeId{n});
    nodes[n] = std::any_of(node.outputs.begin(), node.outputs.end(),
                           [&](ValueId v) { return v != kNoValue && v != from && wanted[v.index]; });
    if (!nodes[n] || is_known_shape(graph, node)) continue;
    for (ValueId v : node.inputs) {
      if (v != kNoValue) wanted[v.index] = true;
    }
  }
  if (!wanted[from.index]) return invalid("'{}' does not depend on '{}'", to_name, from_name);
  for (ValueId v : graph.inputs()) {
    if (v != from && wanted[v.index]) {
      return invalid("'{}' depends on '{}' not only through '{}', which is no cut point before it", to_name,
                     graph.value(v).name, from_name);
    }
  }
  return nodes;
}

Result<Graph> extract(const Graph& graph, ValueId from, ValueId to) {
  LIMBER_ASSIGN(const std::vector<bool> nodes, nodes_between(graph, from, to));
  Graph block;
  block.name = graph.name;
  GraphCopy copy(graph, block);
  copy.stand_for(from, block.add_input(graph.value(from).name, graph.type(from)));
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (!nodes[n]) continue;
    for (ValueId v : graph.node(NodeId{n}).inputs) {
      if (v == kNoValue || v == from) continue;
      const Role role = graph.value(v).role;
      if (role == Role::kParameter || role == Role::kState) LIMBER_TRY(copy.share_parameter(v));
    }
  }
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (!nodes[n]) continue;
    const Node& node = graph.node(NodeId{n});
    if (is_known_shape(graph, node) && !copy.has(node.inputs[0])) {
      const std::vector<int64_t> dims = graph.type(node.inputs[0]).shape.dims();
      Tensor shape = Tensor::from<int64_t>(dims, Shape{static_cast<int64_t>(dims.size())});
      copy.stand_for(node.outputs[0],
                     block.add_constant(graph.value(node.outputs[0]).name, std::move(shape)));
      continue;
    }
    copy.node(node);
  }
  block.add_output(copy.value(to), graph.value(to).name);
  return block;
}

}  // namespace limber
