// How parameters lie between two runs of the graph that updates them.
#include <algorithm>
#include <set>

#include "runtime/choice.h"

namespace limber {
namespace {

// A parameter with what element-wise nodes and updates tie to it: its gradient, the state of its optimiser.
// All of it has one type and lies in one layout.
struct Family {
  std::vector<ValueId> values;
  std::vector<NodeId> nodes;
};

class PackedStore {
 public:
  PackedStore(const CompileContext& context, Assignment& assignment)
      : graph_(context.graph),
        statics_(context.statics),
        layouts_(context.layouts()),
        compiler_(*context.compilers.front()),
        assignment_(assignment),
        readers_(graph_.readers()),
        updates_(graph_.num_values(), kNoValue),
        updated_by_(graph_.num_values(), kNoValue),
        returned_(graph_.num_values(), false),
        member_(graph_.num_values(), false),
        inside_(graph_.num_nodes(), false) {
    for (const Output& o : graph_.outputs()) {
      if (o.into == kNoValue) {
        returned_[o.value.index] = true;
        continue;
      }
      updates_[o.value.index] = o.into;
      updated_by_[o.into.index] = o.value;
    }
  }

  void run() {
    assignment_.stored.assign(graph_.num_values(), kPlain);
    for (const Output& o : graph_.outputs()) {
      if (o.into == kNoValue || member_[o.into.index]) continue;
      const Family family = family_of(o.into);
      double least = cost(family, kPlain);
      for (Layout layout : layouts_around(family)) {
        const double seconds = cost(family, layout);
        if (seconds < least && choose(family, layout)) least = seconds;
      }
    }
  }

 private:
  Family family_of(ValueId parameter) {
    Family family;
    const TensorType& type = graph_.type(parameter);
    add(family, parameter);
    for (size_t i = 0; i < family.values.size(); ++i) {
      const ValueId v = family.values[i];
      for (NodeId reader : readers_[v.index]) add_node(family, reader, type);
      add_node(family, graph_.value(v).producer, type);
      add(family, updates_[v.index]);
      if (const ValueId source = updated_by_[v.index]; source != kNoValue)
        add_node(family, graph_.value(source).producer, type);
    }
    return family;
  }

  void add(Family& family, ValueId v) {
    if (v == kNoValue || member_[v.index]) return;
    member_[v.index] = true;
    family.values.push_back(v);
  }

  // When it is element-wise: the node and whatever it reads and writes of this type.
  void add_node(Family& family, NodeId n, const TensorType& type) {
    if (n == kNoNode || inside_[n.index] || is_static_node(graph_, statics_, n)) return;
    const Node& node = graph_.node(n);
    const bool same =
        !node.inputs.empty() && node.inputs[0] != kNoValue && graph_.type(node.inputs[0]) == type;
    if (!same || assignment_.nodes[n.index].compiler != &compiler_ || !compiler_.element_wise(n, kPlain))
      return;
    inside_[n.index] = true;
    family.nodes.push_back(n);
    for (const auto* values : {&node.inputs, &node.outputs}) {
      for (ValueId v : *values) {
        if (v != kNoValue && graph_.type(v) == type) add(family, v);
      }
    }
  }

  // How a value of the family is made when the family lies in `layout`.
  Layout made_in(ValueId v, Layout layout) const {
    const NodeId producer = graph_.value(v).producer;
    if (producer == kNoNode) return updated_by_[v.index] != kNoValue ? layout : kPlain;
    if (inside_[producer.index]) return layout;
    const Node& node = graph_.node(producer);
    const auto k = std::find(node.outputs.begin(), node.outputs.end(), v) - node.outputs.begin();
    return assignment_.nodes[producer.index].candidate.outputs[static_cast<size_t>(k)];
  }

  std::set<Layout> wanted_in(ValueId v, Layout layout) const {
    std::set<Layout> wanted;
    for (NodeId reader : readers_[v.index]) {
      if (is_static_node(graph_, statics_, reader)) continue;
      const Node& node = graph_.node(reader);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != v) continue;
        wanted.insert(inside_[reader.index] ? layout : assignment_.nodes[reader.index].candidate.inputs[i]);
      }
    }
    if (returned_[v.index]) wanted.insert(kPlain);
    if (updates_[v.index] != kNoValue) wanted.insert(layout);
    return wanted;
  }

  double cost(const Family& family, Layout layout) const {
    double seconds = 0;
    const auto add_reorder = [&](ValueId v, Layout from, Layout to) {
      if (from != to) seconds += layouts_.reorder_seconds(graph_.type(v), from, to);
    };
    for (ValueId v : family.values) {
      if (statics_[v.index]) continue;  // packed ahead, in every layout that is wanted
      const Layout from = made_in(v, layout);
      for (Layout to : wanted_in(v, layout)) add_reorder(v, from, to);
      const ValueId source = updated_by_[v.index];
      if (source != kNoValue && !member_[source.index]) add_reorder(v, made_in(source, layout), layout);
    }
    return seconds;
  }

  // Those in which gradients are made first: where costs are only guessed, and equal, they suit all readers
  // about as well, while a reader's own may be far from what the others want.
  std::vector<Layout> layouts_around(const Family& family) const {
    std::vector<Layout> around;
    const auto add_layout = [&](Layout layout) {
      if (layout != kPlain && std::find(around.begin(), around.end(), layout) == around.end())
        around.push_back(layout);
    };
    for (ValueId v : family.values) {
      add_layout(made_in(v, kPlain));
      if (updated_by_[v.index] != kNoValue) add_layout(made_in(updated_by_[v.index], kPlain));
    }
    for (ValueId v : family.values) {
      for (Layout layout : wanted_in(v, kPlain)) add_layout(layout);
    }
    return around;
  }

  // False when one of its nodes cannot run in `layout`; then nothing changed.
  bool choose(const Family& family, Layout layout) {
    std::vector<Candidate> candidates;
    for (NodeId n : family.nodes) {
      auto candidate = compiler_.element_wise(n, layout);
      if (!candidate) return false;
      candidates.push_back(*std::move(candidate));
    }
    for (size_t i = 0; i < candidates.size(); ++i)
      assignment_.nodes[family.nodes[i].index].candidate = std::move(candidates[i]);
    for (ValueId v : family.values) {
      if (updated_by_[v.index] != kNoValue) assignment_.stored[v.index] = layout;
    }
    return true;
  }

  const Graph& graph_;
  const std::vector<bool>& statics_;
  Backend& layouts_;
  NodeCompiler& compiler_;  // of layouts_
  Assignment& assignment_;
  const std::vector<std::vector<NodeId>> readers_;
  std::vector<ValueId> updates_, updated_by_;  // by value: what it updates, what updates it
  std::vector<bool> returned_;                 // by value: an output that updates nothing
  std::vector<bool> member_;                   // by value: in some family
  std::vector<bool> inside_;                   // by node: in some family
};

}  // namespace

void store_packed(const CompileContext& context, Assignment& assignment) {
  PackedStore(context, assignment).run();
}

}  // namespace limber
