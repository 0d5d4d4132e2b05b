#include "ir/graph.h"

#include <fmt/core.h>

#include <algorithm>

namespace limber {

std::string Graph::unique_name(std::string_view wanted) {
  std::string name(wanted.empty() ? std::string_view("t") : wanted);
  if (names_.find(name) == names_.end() && !wanted.empty()) return name;
  for (size_t i = values_.size();; ++i) {
    std::string candidate = fmt::format("{}.{}", name, i);
    if (names_.find(candidate) == names_.end()) return candidate;
  }
}

ValueId Graph::add_value(Value value) {
  value.name = unique_name(value.name);
  const ValueId id{static_cast<uint32_t>(values_.size())};
  names_.emplace(value.name, id.index);
  values_.push_back(std::move(value));
  return id;
}

ValueId Graph::add_input(std::string_view name, TensorType type) {
  const ValueId v = add_value({std::string(name), std::move(type), Role::kInput, kNoNode, {}});
  inputs_.push_back(v);
  return v;
}

ValueId Graph::add_parameter(std::string_view name, TensorType type, Role role) {
  LIMBER_ASSERT(role == Role::kParameter || role == Role::kState);
  return add_value({std::string(name), std::move(type), role, kNoNode, {}});
}

ValueId Graph::add_constant(std::string_view name, Tensor value) {
  LIMBER_ASSERT(value.valid());
  TensorType type = value.type();
  return add_value({std::string(name), std::move(type), Role::kConstant, kNoNode, std::move(value)});
}

NodeId Graph::add_node(OpKind op, std::vector<ValueId> inputs, Attrs attrs, std::vector<TensorType> types,
                       std::string_view name) {
  const NodeId id{static_cast<uint32_t>(nodes_.size())};
  Node node{op, std::move(inputs), {}, std::move(attrs), std::string(name)};
  for (TensorType& type : types) {
    node.outputs.push_back(add_value({std::string(name), std::move(type), Role::kActivation, id, {}}));
  }
  nodes_.push_back(std::move(node));
  return id;
}

ValueId Graph::add(OpKind op, std::vector<ValueId> inputs, Attrs attrs, TensorType type,
                   std::string_view name) {
  return node(add_node(op, std::move(inputs), std::move(attrs), {std::move(type)}, name)).outputs[0];
}

ValueId Graph::add_optional_output(NodeId node, size_t index, TensorType type, std::string_view name) {
  const ValueId v = add_value({std::string(name), std::move(type), Role::kActivation, node, {}});
  std::vector<ValueId>& outputs = mutable_node(node).outputs;
  if (outputs.size() <= index) outputs.resize(index + 1, kNoValue);
  LIMBER_ASSERT(outputs[index] == kNoValue);
  outputs[index] = v;
  return v;
}

void Graph::add_output(ValueId value, std::string_view name, ValueId rows) {
  outputs_.push_back({value, std::string(name), rows, kNoValue});
}

void Graph::add_update(ValueId target, ValueId value) {
  outputs_.push_back({value, this->value(target).name, kNoValue, target});
}

std::optional<ValueId> Graph::find(std::string_view name) const {
  const auto it = names_.find(name);
  if (it == names_.end()) return std::nullopt;
  return ValueId{it->second};
}

std::vector<std::vector<NodeId>> Graph::readers() const {
  std::vector<std::vector<NodeId>> readers(values_.size());
  for (uint32_t n = 0; n < nodes_.size(); ++n) {
    for (ValueId v : nodes_[n].inputs) {
      if (v != kNoValue) readers[v.index].push_back(NodeId{n});
    }
  }
  return readers;
}

bool Graph::is_output(ValueId v) const {
  return std::any_of(outputs_.begin(), outputs_.end(),
                     [v](const Output& o) { return o.value == v || o.rows == v; });
}

std::vector<bool> Graph::updated() const {
  std::vector<bool> updated(values_.size(), false);
  for (const Output& o : outputs_) {
    if (o.into != kNoValue) updated[o.into.index] = true;
  }
  return updated;
}

void Graph::rename(ValueId v, std::string_view name) {
  if (values_[v.index].name == name) return;
  names_.erase(values_[v.index].name);
  values_[v.index].name = unique_name(name);
  names_.emplace(values_[v.index].name, v.index);
}

void Graph::replace_uses(ValueId from, ValueId to) {
  for (Node& node : nodes_) std::replace(node.inputs.begin(), node.inputs.end(), from, to);
  for (Output& output : outputs_) {
    if (output.value == from) output.value = to;
    if (output.rows == from) output.rows = to;
  }
}

namespace {

// By node: does an output depend on it?
std::vector<bool> live_nodes(const std::vector<Node>& nodes, const std::vector<Value>& values,
                             const std::vector<Output>& outputs) {
  std::vector<bool> live(nodes.size(), false);
  std::vector<uint32_t> stack;
  const auto reach = [&](ValueId v) {
    if (v == kNoValue || values[v.index].producer == kNoNode) return;
    const uint32_t n = values[v.index].producer.index;
    if (live[n]) return;
    live[n] = true;
    stack.push_back(n);
  };
  for (const Output& output : outputs) reach(output.value), reach(output.rows);
  while (!stack.empty()) {
    const uint32_t n = stack.back();
    stack.pop_back();
    for (ValueId v : nodes[n].inputs) reach(v);
  }
  return live;
}

// Nodes that outputs depend on in the order they have, except that what a node needs comes before it.
std::vector<uint32_t> live_order(const std::vector<Node>& nodes, const std::vector<Value>& values,
                                 const std::vector<Output>& outputs) {
  enum : uint8_t { kNew, kOpen, kDone };
  const std::vector<bool> live = live_nodes(nodes, values, outputs);
  std::vector<uint8_t> state(nodes.size(), kNew);
  std::vector<uint32_t> order, stack;
  for (uint32_t first = 0; first < nodes.size(); ++first) {
    if (!live[first] || state[first] == kDone) continue;
    stack.push_back(first);
    while (!stack.empty()) {
      const uint32_t n = stack.back();
      if (state[n] != kNew) {
        if (state[n] == kOpen) order.push_back(n);
        state[n] = kDone;
        stack.pop_back();
        continue;
      }
      state[n] = kOpen;
      for (auto it = nodes[n].inputs.rbegin(); it != nodes[n].inputs.rend(); ++it) {
        if (*it == kNoValue || values[it->index].producer == kNoNode) continue;
        const uint32_t producer = values[it->index].producer.index;
        LIMBER_ASSERT(state[producer] != kOpen);  // a cycle
        if (state[producer] == kNew) stack.push_back(producer);
      }
    }
  }
  return order;
}

}  // namespace

void Graph::reorder(const std::vector<uint32_t>& order) {
  LIMBER_ASSERT(order.size() == nodes_.size());
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  for (uint32_t n : order) {
    for (ValueId v : nodes_[n].outputs) {
      if (v != kNoValue) values_[v.index].producer = NodeId{static_cast<uint32_t>(nodes.size())};
    }
    nodes.push_back(std::move(nodes_[n]));
  }
  nodes_ = std::move(nodes);
}

void Graph::compact() {
  const std::vector<uint32_t> order = live_order(nodes_, values_, outputs_);

  std::vector<bool> used(values_.size(), false);
  const auto use = [&](ValueId v) {
    if (v != kNoValue) used[v.index] = true;
  };
  for (ValueId v : inputs_) use(v);
  for (const Output& o : outputs_) use(o.value), use(o.rows), use(o.into);
  for (uint32_t n : order) {
    for (ValueId v : nodes_[n].inputs) use(v);
    for (ValueId v : nodes_[n].outputs) use(v);
  }

  std::vector<ValueId> renumbered(values_.size(), kNoValue);
  std::vector<Value> values;
  names_.clear();
  for (uint32_t i = 0; i < values_.size(); ++i) {
    if (!used[i]) continue;
    renumbered[i] = ValueId{static_cast<uint32_t>(values.size())};
    names_.emplace(values_[i].name, renumbered[i].index);
    values.push_back(std::move(values_[i]));
  }
  const auto renumber = [&](ValueId& v) {
    if (v != kNoValue) v = renumbered[v.index];
  };
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  for (uint32_t n : order) {
    Node node = std::move(nodes_[n]);
    for (ValueId& v : node.inputs) renumber(v);
    for (ValueId& v : node.outputs) {
      renumber(v);
      if (v != kNoValue) values[v.index].producer = NodeId{static_cast<uint32_t>(nodes.size())};
    }
    nodes.push_back(std::move(node));
  }
  for (ValueId& v : inputs_) renumber(v);
  for (Output& o : outputs_) renumber(o.value), renumber(o.rows), renumber(o.into);
  nodes_ = std::move(nodes);
  values_ = std::move(values);
}

}  // namespace limber
