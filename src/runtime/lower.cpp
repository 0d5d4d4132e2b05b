#include "runtime/lower.h"

#include <map>
#include <set>

#include "base/hash.h"
#include "ops/op_def.h"

namespace limber {
namespace {

class Lowering {
 public:
  Lowering(Plan& plan, const std::vector<bool>& statics, const Assignment& assignment)
      : plan_(plan), graph_(plan.graph), statics_(statics), assignment_(assignment) {}

  Status run() {
    keys_.resize(graph_.num_values());
    leaves_.resize(graph_.num_values());
    target_.resize(graph_.num_values(), kNoValue);
    for (const Output& o : graph_.outputs()) {
      if (o.into == kNoValue) continue;
      target_[o.value.index] = o.into;
      plan_.updates.push_back(graph_.value(o.into).name);
    }
    for (ValueId v : graph_.inputs()) plan_.input_slots.push_back(new_slot(v, kPlain, Storage::kInput));
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      const Value& value = graph_.values()[v];
      if (value.producer == kNoNode && value.role != Role::kInput) add_leaf(ValueId{v});
    }
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) LIMBER_TRY(lower_node(NodeId{n}));
    for (const Output& output : graph_.outputs()) LIMBER_TRY(lower_output(output));
    for (Step& step : updates_) add_step(std::move(step));
    return {};
  }

 private:
  int new_slot(ValueId v, Layout layout, Storage storage) {
    Slot slot;
    slot.value = v;
    slot.type = graph_.type(v);
    slot.layout = layout;
    slot.storage = storage;
    slot.bytes = layouts().bytes(slot.type, layout);
    const int index = static_cast<int>(plan_.slots.size());
    slot.root = index;
    plan_.slots.push_back(std::move(slot));
    where_[{v, layout}] = index;
    return index;
  }

  Backend& layouts() const { return *plan_.backends.front(); }

  void add_leaf(ValueId v) {
    const Value& value = graph_.value(v);
    if (value.role == Role::kConstant) {
      const auto bytes =
          std::string_view(static_cast<const char*>(value.constant.raw()), value.constant.bytes());
      keys_[v.index] = fmt::format("c{:016x}{}", Hasher().add(bytes).digest(), value.type.to_string());
      new_slot(v, kPlain, Storage::kStatic);
      return;
    }
    keys_[v.index] = "p" + value.name;
    const int leaf = static_cast<int>(plan_.leaves.size());
    plan_.leaves.push_back(value.name);
    leaves_[v.index] = {leaf};
    const Layout layout = stored(v);
    plan_.packed.push_back(layout == kPlain ? "" : packed_key(v, layout));
    const int slot = new_slot(v, layout, statics_[v.index] ? Storage::kStatic : Storage::kParameter);
    plan_.slots[static_cast<size_t>(slot)].leaf = leaf;
  }

  Layout stored(ValueId v) const { return assignment_.stored[v.index]; }

  std::string packed_key(ValueId v, Layout layout) const {
    return keys_[v.index] + "@" + layouts().layout_name(layout);
  }

  std::vector<int> leaves_of(const Node& node) const {
    std::set<int> leaves;
    for (ValueId v : node.inputs) {
      if (v != kNoValue) leaves.insert(leaves_[v.index].begin(), leaves_[v.index].end());
    }
    return {leaves.begin(), leaves.end()};
  }

  // Everything that decides what a static node computes, whatever graph it stands in.
  std::string static_key(const Node& node, size_t output) const {
    Hasher hasher;
    hasher.add(op_name(node.op)).add(output);
    Graph attrs_only;
    attrs_only.add_node(node.op, {}, node.attrs, {});
    hasher.add(hash(attrs_only));
    std::string leaves;
    for (ValueId v : node.inputs) leaves += v == kNoValue ? "_" : keys_[v.index] + graph_.type(v).to_string();
    return fmt::format("n{:016x}", hasher.add(leaves).digest());
  }

  Status lower_node(NodeId n) {
    const Node& node = graph_.node(n);
    const NodeChoice& choice = assignment_.nodes[n.index];
    const bool fixed = is_static_node(graph_, statics_, n);
    if (fixed) {
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        if (node.outputs[k] == kNoValue) continue;
        keys_[node.outputs[k].index] = static_key(node, k);
        leaves_[node.outputs[k].index] = leaves_of(node);
      }
    }
    Step step = describe(n, choice);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      LIMBER_ASSIGN(const int slot, slot_for(node.inputs[i], choice.candidate.inputs[i], step.name));
      step.inputs.push_back(slot);
    }
    if (choice.candidate.view && !fixed) return add_view(node, choice.candidate, step.inputs[0]);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId v = node.outputs[k];
      const Storage storage = fixed ? Storage::kStatic : Storage::kArena;
      step.outputs.push_back(v == kNoValue ? -1 : new_slot(v, choice.candidate.outputs[k], storage));
      if (v != kNoValue && !fixed) update_in_place(n, k, step);
    }
    LIMBER_ASSIGN(auto kernel, compile_node(n, choice));
    step.kernel = std::move(kernel);
    if (fixed) {
      plan_.statics.push_back({std::move(step), leaves_of(node), keys_[first_output(node).index]});
      return {};
    }
    if (choice.candidate.must_alias >= 0) {
      LIMBER_TRY(copy_if_kept(n, step, static_cast<size_t>(choice.candidate.must_alias)));
    }
    add_step(std::move(step));
    return {};
  }

  // Gives an output that updates a parameter the parameter's own memory, when the operator allows that and
  // nobody reads the old value afterwards. Otherwise lower_output copies at the end.
  void update_in_place(NodeId n, size_t output, const Step& step) {
    const Node& node = graph_.node(n);
    const ValueId target = target_[node.outputs[output].index];
    if (target == kNoValue) return;
    Slot& result = plan_.slots[static_cast<size_t>(step.outputs[output])];
    for (const InPlace& pair : op_def(node.op).in_place) {
      if (pair.output != static_cast<int>(output)) continue;
      const auto input = static_cast<size_t>(pair.input);
      if (node.inputs[input] != target || result.layout != stored(target)) continue;
      const int root = plan_.slots[static_cast<size_t>(step.inputs[input])].root;
      const bool itself = plan_.slots[static_cast<size_t>(root)].storage == Storage::kParameter;
      if (itself && !read_after(n, root)) result.root = root;
    }
  }

  static ValueId first_output(const Node& node) {
    for (ValueId v : node.outputs) {
      if (v != kNoValue) return v;
    }
    LIMBER_UNREACHABLE();
  }

  Result<std::unique_ptr<Kernel>> compile_node(NodeId n, const NodeChoice& choice) {
    auto kernel = choice.compiler->compile(n, choice.candidate);
    if (!kernel.ok()) return kernel.status().in(fmt::format("node '{}'", graph_.node(n).name));
    return kernel;
  }

  Step describe(NodeId n, const NodeChoice& choice) const {
    const Node& node = graph_.node(n);
    Step step;
    step.node = n;
    step.name = node.name.empty() ? graph_.value(first_output(node)).name : node.name;
    step.op = op_name(node.op);
    step.impl = choice.candidate.impl;
    step.flops = node_flops(graph_, n);
    step.bytes = node_bytes(graph_, n);
    return step;
  }

  Status add_view(const Node& node, const Candidate& candidate, int source) {
    const int slot = new_slot(node.outputs[0], candidate.outputs[0], Storage::kArena);
    plan_.slots[static_cast<size_t>(slot)].root = plan_.slots[static_cast<size_t>(source)].root;
    return {};
  }

  void add_step(Step step) {
    if (const size_t scratch = step.kernel->scratch_bytes(); scratch > 0) {
      Slot slot;
      slot.bytes = scratch;
      slot.root = step.scratch = static_cast<int>(plan_.slots.size());
      plan_.slots.push_back(std::move(slot));
    }
    plan_.steps.push_back(std::move(step));
  }

  // The slot that holds `v` in `layout`, made by a reorder when there is none yet.
  Result<int> slot_for(ValueId v, Layout layout, const std::string& reader) {
    if (v == kNoValue) return -1;
    if (const auto it = where_.find({v, layout}); it != where_.end()) return it->second;
    const bool fixed = statics_[v.index];
    const int source = source_slot(v);
    const Layout from = plan_.slots[static_cast<size_t>(source)].layout;
    const int target = new_slot(v, layout, fixed ? Storage::kStatic : Storage::kArena);
    LIMBER_ASSIGN(Step step, reorder_step(source, target));
    step.reason = fmt::format("'{}' wants {}, it is {}", reader, layouts().layout_name(layout),
                              layouts().layout_name(from));
    if (fixed) {
      plan_.statics.push_back({std::move(step), leaves_[v.index], packed_key(v, layout)});
    } else {
      add_step(std::move(step));
    }
    return target;
  }

  // Where `v` was first written.
  int source_slot(ValueId v) const {
    for (size_t i = 0; i < plan_.slots.size(); ++i) {
      if (plan_.slots[i].value == v) return static_cast<int>(i);
    }
    LIMBER_UNREACHABLE();
  }

  Result<Step> reorder_step(int source, int target) {
    const Slot& from = plan_.slots[static_cast<size_t>(source)];
    const Slot& to = plan_.slots[static_cast<size_t>(target)];
    LIMBER_ASSIGN(auto kernel, layouts().reorder(from.type, from.layout, to.layout));
    Step step;
    step.kernel = std::move(kernel);
    step.inputs = {source};
    step.outputs = {target};
    step.name = graph_.value(from.value).name;
    step.op = from.layout == to.layout ? "Copy" : "Reorder";
    step.impl = fmt::format("{}->{}", layouts().layout_name(from.layout), layouts().layout_name(to.layout));
    step.bytes = static_cast<double>(from.bytes + to.bytes);
    return step;
  }

  // A kernel that accumulates into its input needs that input to itself.
  Status copy_if_kept(NodeId n, Step& step, size_t input) {
    const int source = step.inputs[input];
    const Slot& slot = plan_.slots[static_cast<size_t>(source)];
    const bool owned = plan_.slots[static_cast<size_t>(slot.root)].storage == Storage::kArena;
    if (owned && !read_after(n, slot.root)) return {};
    const ValueId v = slot.value;
    const Layout layout = slot.layout;
    const int kept = where_[{v, layout}];
    const int target = new_slot(v, layout, Storage::kArena);
    where_[{v, layout}] = kept;
    LIMBER_ASSIGN(Step copy, reorder_step(source, target));
    copy.reason = fmt::format("'{}' adds into it, and it is read again", step.name);
    add_step(std::move(copy));
    step.inputs[input] = target;
    return {};
  }

  // Is memory with this root read by a later node, or by this node through another input, or returned?
  bool read_after(NodeId n, int root) const {
    for (size_t i = 0; i < plan_.slots.size(); ++i) {
      const Slot& slot = plan_.slots[i];
      if (slot.root != root || slot.value == kNoValue) continue;
      if (graph_.is_output(slot.value)) return true;
      int here = 0;
      for (uint32_t m = n.index; m < graph_.num_nodes(); ++m) {
        for (ValueId v : graph_.nodes()[m].inputs) {
          if (v == slot.value && (m > n.index || ++here > 1)) return true;
        }
      }
    }
    return false;
  }

  Status lower_output(const Output& output) {
    if (output.into != kNoValue) return lower_update(output);
    LIMBER_ASSIGN(const int slot, output_slot(output.value, output.name));
    plan_.output_slots.push_back(slot);
    int rows = -1;
    if (output.rows != kNoValue) {
      LIMBER_ASSIGN(rows, output_slot(output.rows, output.name));
    }
    plan_.row_slots.push_back(rows);
    return {};
  }

  Status lower_update(const Output& output) {
    const Layout layout = stored(output.into);
    const int target = where_.at({output.into, layout});
    plan_.output_slots.push_back(target);
    plan_.row_slots.push_back(-1);
    LIMBER_ASSIGN(const int slot, slot_for(output.value, layout, "update of " + output.name));
    if (plan_.slots[static_cast<size_t>(slot)].root == plan_.slots[static_cast<size_t>(target)].root)
      return {};
    LIMBER_ASSIGN(Step step, reorder_step(slot, target));
    step.reason = fmt::format("'{}' is read until the end of the step", output.name);
    updates_.push_back(std::move(step));
    return {};
  }

  Result<int> output_slot(ValueId v, const std::string& name) {
    LIMBER_ASSIGN(const int slot, slot_for(v, kPlain, "output " + name));
    Slot& root = plan_.slots[static_cast<size_t>(plan_.slots[static_cast<size_t>(slot)].root)];
    if (root.storage == Storage::kArena || root.storage == Storage::kOutput) {
      root.storage = Storage::kOutput;
      return slot;
    }
    const int target = new_slot(v, kPlain, Storage::kOutput);
    LIMBER_ASSIGN(Step step, reorder_step(slot, target));
    step.reason = fmt::format("output '{}' is an input or a constant", name);
    add_step(std::move(step));
    return target;
  }

  Plan& plan_;
  const Graph& graph_;
  const std::vector<bool>& statics_;
  const Assignment& assignment_;
  std::map<std::pair<ValueId, Layout>, int> where_;
  std::vector<std::string> keys_;         // by value: how a static value is made
  std::vector<std::vector<int>> leaves_;  // by value, static ones: what it is made from
  std::vector<ValueId> target_;           // by value: what it updates, or kNoValue
  std::vector<Step> updates_;             // copies that come last
};

}  // namespace

Status lower(Plan& plan, const std::vector<bool>& statics, const Assignment& assignment) {
  return Lowering(plan, statics, assignment).run();
}

}  // namespace limber
