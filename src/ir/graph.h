// The one IR: a model, a training step, a subnet, each is a Graph.
// Plain data with ids; nodes are always in topological order. Copying is cheap: names and ids are
// copied, the bytes of constants are shared.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attrs.h"
#include "ir/op_kind.h"
#include "tensor/tensor.h"

namespace limber {

struct ValueId {
  uint32_t index = UINT32_MAX;
  auto operator<=>(const ValueId&) const = default;
};
struct NodeId {
  uint32_t index = UINT32_MAX;
  auto operator<=>(const NodeId&) const = default;
};
inline constexpr ValueId kNoValue{};
inline constexpr NodeId kNoNode{};

enum class Role : uint8_t {
  kActivation,  // produced by a node
  kInput,       // given for every run
  kParameter,   // named in Parameters, shared by all plans; may be trained
  kConstant,    // bytes held by the graph itself
  kState,       // like a parameter, but written by the graph (running statistics, optimiser state)
};

struct Value {
  std::string name;  // unique in the graph
  TensorType type;
  Role role = Role::kActivation;
  NodeId producer;  // kNoNode unless kActivation
  Tensor constant;  // valid only for kConstant
};

struct Node {
  OpKind op = OpKind::kIdentity;
  std::vector<ValueId> inputs;   // kNoValue for an absent optional input
  std::vector<ValueId> outputs;  // kNoValue for an output nobody wants
  Attrs attrs;
  std::string name;  // for people: messages, profiles; need not be unique
};

struct Output {
  ValueId value;
  std::string name;         // what the outside calls it; unique among outputs
  ValueId rows = kNoValue;  // i64[]: how many leading rows of `value` are valid (detection outputs)
  // A parameter or state that holds `value` after the run: how a graph trains. During the run every
  // reader sees the old one.
  ValueId into = kNoValue;
};

class Graph {
 public:
  std::string name;

  // --- building. Names are made unique by a suffix when they are taken. -------------------------------
  ValueId add_input(std::string_view name, TensorType type);
  ValueId add_parameter(std::string_view name, TensorType type, Role role = Role::kParameter);
  ValueId add_constant(std::string_view name, Tensor value);
  // Adds a node with one output per type. `name` also names the outputs.
  NodeId add_node(OpKind op, std::vector<ValueId> inputs, Attrs attrs, std::vector<TensorType> types,
                  std::string_view name = {});
  // The same for the usual case of one output.
  ValueId add(OpKind op, std::vector<ValueId> inputs, Attrs attrs, TensorType type,
              std::string_view name = {});
  // Output `index` of a node that was left out or absent until now. Those between become absent.
  ValueId add_optional_output(NodeId node, size_t index, TensorType type, std::string_view name = {});
  void add_output(ValueId value, std::string_view name, ValueId rows = kNoValue);
  // After a run `target` holds `value`. The output is named after the target.
  void add_update(ValueId target, ValueId value);

  // --- reading ------------------------------------------------------------------------------------------
  size_t num_values() const { return values_.size(); }
  size_t num_nodes() const { return nodes_.size(); }
  const Value& value(ValueId v) const { return LIMBER_ASSERT(v.index < values_.size()), values_[v.index]; }
  const Node& node(NodeId n) const { return LIMBER_ASSERT(n.index < nodes_.size()), nodes_[n.index]; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  const TensorType& type(ValueId v) const { return value(v).type; }
  std::optional<ValueId> find(std::string_view name) const;
  // Nodes that read each value, by value index; a node that reads it twice is listed twice.
  std::vector<std::vector<NodeId>> readers() const;
  bool is_output(ValueId v) const;
  // By value: is it the target of an update?
  std::vector<bool> updated() const;

  // --- changing. Passes mostly build a new graph; these are for small edits. ------------------------------
  Node& mutable_node(NodeId n) { return LIMBER_ASSERT(n.index < nodes_.size()), nodes_[n.index]; }
  Value& mutable_value(ValueId v) { return LIMBER_ASSERT(v.index < values_.size()), values_[v.index]; }
  std::vector<Output>& mutable_outputs() { return outputs_; }
  void rename(ValueId v, std::string_view name);
  // Every reader of `from` (nodes and graph outputs) reads `to` instead.
  void replace_uses(ValueId from, ValueId to);
  // Puts the nodes in this order: order[i] is the index of the node that becomes number i. REQUIRES: a
  // permutation that is topological
  void reorder(const std::vector<uint32_t>& order);
  // Puts nodes back into topological order (stable), drops nodes no output depends on, values nobody
  // names, and renumbers. Inputs stay even when unused. REQUIRES: no cycle.
  void compact();

 private:
  std::string unique_name(std::string_view wanted);
  ValueId add_value(Value value);

  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<ValueId> inputs_;
  std::vector<Output> outputs_;
  std::map<std::string, uint32_t, std::less<>> names_;
};

// Structure only (ids, order, names, roles); ops/verify.h adds the type rules.
Status verify_structure(const Graph& graph);

// The stable text form. parse(print(g)) gives an equal graph; constants above 64 elements are printed
// with their hash and parse to an error unless `constants` has them by name.
std::string print(const Graph& graph);
Result<Graph> parse(std::string_view text, const std::map<std::string, Tensor>* constants = nullptr);

// Same structure, attributes, types and constant bytes -> same hash, whatever the names of activations.
uint64_t hash(const Graph& graph);

}  // namespace limber
