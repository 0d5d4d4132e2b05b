// One walk over a graph that changes it. Keeps readers up to date, so a rule costs what it changes and
// not a search through the graph. Until finish() nodes may be out of order and dead ones are still there.
#pragma once

#include <string_view>
#include <vector>

#include "ops/op_def.h"

namespace limber {

class Rewriter {
 public:
  explicit Rewriter(Graph& graph);

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }

  // Invalid after the next emit().
  const Node& node(NodeId n) const { return graph_.node(n); }
  bool dead(NodeId n) const { return dead_[n.index]; }
  // kNoValue when the node has no such input.
  ValueId input(NodeId n, size_t index) const;
  ValueId output(NodeId n) const { return node(n).outputs[0]; }
  // The node that makes `v` as its first output when it is an `op`, else kNoNode.
  NodeId producer(ValueId v, OpKind op) const;
  // Read by one node, once, and not an output of the graph: whoever reads it may take it over.
  bool used_once(ValueId v) const { return uses(v) == 1 && output_uses_[v.index] == 0; }
  bool unused(ValueId v) const { return uses(v) == 0; }
  // Depends only on constants and on parameters and state that the graph does not update.
  bool is_static(ValueId v) const { return static_[v.index]; }

  Result<ValueId> emit(OpKind op, std::vector<ValueId> inputs, Attrs attrs, std::string_view name);
  // Every reader of `from` reads `to` instead; nodes nobody reads any more are dead. A new `to` takes
  // the name. False, and nothing changes, when the types differ or when `from` is an output of the graph
  // and `to` cannot be one of its own (it is one already, or is not computed).
  bool replace(ValueId from, ValueId to);
  void set_input(NodeId n, size_t index, ValueId v);
  Attrs& edit_attrs(NodeId n);
  void drop_output(NodeId n, size_t index);

  // Restores order and drops what is dead; tells whether the graph changed.
  bool finish();

 private:
  size_t uses(ValueId v) const { return readers_[v.index].size() + output_uses_[v.index]; }
  void track_new_values();
  void remove_reader(ValueId v, NodeId n);

  Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;  // by value; a node that reads it twice is listed twice
  std::vector<uint32_t> output_uses_;         // by value: how often the graph's outputs name it
  std::vector<bool> static_;                  // by value
  std::vector<bool> dead_;                    // by node
  size_t old_values_;                         // values the walk started with
  bool changed_ = false;
  bool emitted_ = false;  // nodes, which change nothing as long as nobody reads them
};

// Calls rule(rewriter, node) for every node the graph had at the start that is still alive, in
// topological order. True when something changed.
template <typename Rule>
Result<bool> sweep(Graph& graph, const Rule& rule) {
  Rewriter rewriter(graph);
  const auto count = static_cast<uint32_t>(graph.num_nodes());
  for (uint32_t n = 0; n < count; ++n) {
    if (rewriter.dead(NodeId{n})) continue;
    if (Status status = rule(rewriter, NodeId{n}); !status.ok()) return status;
  }
  return rewriter.finish();
}

// Sweeps until nothing changes.
template <typename Rule>
Status sweep_all(Graph& graph, const Rule& rule) {
  constexpr int kMaxSweeps = 64;  // every rule makes the graph smaller or simpler; this only bounds a bug
  for (int i = 0; i < kMaxSweeps; ++i) {
    LIMBER_ASSIGN(const bool changed, sweep(graph, rule));
    if (!changed) break;
  }
  return {};
}

}  // namespace limber
