#include "passes/rewriter.h"

#include <algorithm>

namespace limber {

Rewriter::Rewriter(Graph& graph)
    : graph_(graph),
      readers_(graph.readers()),
      output_uses_(graph.num_values(), 0),
      dead_(graph.num_nodes(), false),
      old_values_(graph.num_values()) {
  for (const Output& o : graph.outputs()) {
    ++output_uses_[o.value.index];
    if (o.rows != kNoValue) ++output_uses_[o.rows.index];
  }
  static_.resize(graph.num_values(), false);
  const std::vector<bool> updated = graph.updated();
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    const Role role = graph.values()[v].role;
    const bool stored = role == Role::kParameter || role == Role::kState;
    static_[v] = role == Role::kConstant || (stored && !updated[v]);
  }
  for (const Node& node : graph.nodes()) {
    const bool all = std::all_of(node.inputs.begin(), node.inputs.end(),
                                 [this](ValueId v) { return v == kNoValue || static_[v.index]; });
    for (ValueId v : node.outputs) {
      if (v != kNoValue) static_[v.index] = all;
    }
  }
}

ValueId Rewriter::input(NodeId n, size_t index) const {
  const auto& inputs = node(n).inputs;
  return index < inputs.size() ? inputs[index] : kNoValue;
}

NodeId Rewriter::producer(ValueId v, OpKind op) const {
  if (v == kNoValue) return kNoNode;
  const NodeId n = graph_.value(v).producer;
  return n != kNoNode && node(n).op == op && node(n).outputs[0] == v ? n : kNoNode;
}

Result<ValueId> Rewriter::emit(OpKind op, std::vector<ValueId> inputs, Attrs attrs, std::string_view name) {
  LIMBER_ASSIGN(const ValueId v, limber::emit(graph_, op, std::move(inputs), std::move(attrs), name));
  track_new_values();
  const NodeId n = graph_.value(v).producer;
  bool all = true;
  for (ValueId in : node(n).inputs) {
    if (in == kNoValue) continue;
    readers_[in.index].push_back(n);
    all = all && static_[in.index];
  }
  static_[v.index] = all;
  emitted_ = true;
  return v;
}

// Constants are added to the graph directly.
void Rewriter::track_new_values() {
  const size_t before = static_.size();
  readers_.resize(graph_.num_values());
  output_uses_.resize(graph_.num_values(), 0);
  static_.resize(graph_.num_values(), false);
  dead_.resize(graph_.num_nodes(), false);
  for (size_t v = before; v < graph_.num_values(); ++v)
    static_[v] = graph_.values()[v].role == Role::kConstant;
}

bool Rewriter::replace(ValueId from, ValueId to) {
  track_new_values();
  LIMBER_ASSERT(from != to);
  if (graph_.type(from) != graph_.type(to)) return false;
  const bool is_output = output_uses_[from.index] > 0;
  if (is_output && (output_uses_[to.index] > 0 || graph_.value(to).role != Role::kActivation)) return false;
  if (is_output) {
    for (Output& o : graph_.mutable_outputs()) {
      if (o.value == from) o.value = to;
      if (o.rows == from) o.rows = to;
    }
    std::swap(output_uses_[to.index], output_uses_[from.index]);
  }
  const std::vector<NodeId> readers = std::exchange(readers_[from.index], {});
  for (NodeId n : readers) {
    auto& inputs = graph_.mutable_node(n).inputs;
    *std::find(inputs.begin(), inputs.end(), from) = to;
    readers_[to.index].push_back(n);
  }
  if (to.index >= old_values_ && from.index < old_values_) {
    const std::string name = graph_.value(from).name;
    graph_.rename(from, {});
    graph_.rename(to, name);
  }
  changed_ = true;
  remove_reader(from, kNoNode);
  return true;
}

// Takes one reader away (kNoNode: none); what nobody reads any more dies, and so on upwards.
void Rewriter::remove_reader(ValueId v, NodeId reader) {
  std::vector<std::pair<ValueId, NodeId>> work{{v, reader}};
  while (!work.empty()) {
    const auto [value, by] = work.back();
    work.pop_back();
    auto& readers = readers_[value.index];
    if (by != kNoNode) readers.erase(std::find(readers.begin(), readers.end(), by));
    const NodeId n = graph_.value(value).producer;
    if (n == kNoNode || dead_[n.index]) continue;
    const auto& outputs = node(n).outputs;
    if (!std::all_of(outputs.begin(), outputs.end(),
                     [this](ValueId o) { return o == kNoValue || unused(o); }))
      continue;
    dead_[n.index] = true;
    for (ValueId in : node(n).inputs) {
      if (in != kNoValue) work.emplace_back(in, n);
    }
  }
}

void Rewriter::set_input(NodeId n, size_t index, ValueId v) {
  track_new_values();
  auto& inputs = graph_.mutable_node(n).inputs;
  if (inputs.size() <= index) inputs.resize(index + 1, kNoValue);
  const ValueId old = std::exchange(inputs[index], v);
  if (v != kNoValue) readers_[v.index].push_back(n);
  if (old != kNoValue) remove_reader(old, n);
  changed_ = true;
}

Attrs& Rewriter::edit_attrs(NodeId n) {
  changed_ = true;
  return graph_.mutable_node(n).attrs;
}

void Rewriter::drop_output(NodeId n, size_t index) {
  auto& outputs = graph_.mutable_node(n).outputs;
  LIMBER_ASSERT(index + 1 == outputs.size() && (outputs[index] == kNoValue || unused(outputs[index])));
  outputs.pop_back();
  changed_ = true;
}

bool Rewriter::finish() {
  if (changed_ || emitted_) graph_.compact();
  return changed_;
}

}  // namespace limber
