#include <algorithm>
#include <set>

#include "ir/graph.h"

namespace limber {
namespace {

Status check_value(const Graph& g, ValueId v) {
  const Value& value = g.value(v);
  const auto found = g.find(value.name);
  if (!found || *found != v) return invalid("value '{}': its name is not unique", value.name);
  if (value.type.rank() > kMaxRank) {
    return invalid("value '{}': rank {} is above {}", value.name, value.type.rank(), kMaxRank);
  }
  for (const Dim& d : value.type.shape) {
    if (d.is_constant() && d.value() < 0) {
      return invalid("value '{}': negative dimension in {}", value.name, value.type.to_string());
    }
  }
  const bool produced = value.producer != kNoNode;
  if (produced != (value.role == Role::kActivation)) {
    return invalid("value '{}': only activations have a producer", value.name);
  }
  if (produced) {
    if (value.producer.index >= g.num_nodes())
      return invalid("value '{}': its producer does not exist", value.name);
    const auto& outputs = g.node(value.producer).outputs;
    if (std::find(outputs.begin(), outputs.end(), v) == outputs.end()) {
      return invalid("value '{}': its producer does not list it", value.name);
    }
  }
  if (value.role == Role::kConstant && (!value.constant.valid() || value.constant.type() != value.type)) {
    return invalid("constant '{}': its bytes do not match its type {}", value.name, value.type.to_string());
  }
  return {};
}

Status check_node(const Graph& g, uint32_t index) {
  const Node& node = g.nodes()[index];
  const auto where = [&] { return fmt::format("node {} '{}' ({})", index, node.name, op_name(node.op)); };
  for (ValueId v : node.inputs) {
    if (v == kNoValue) continue;
    if (v.index >= g.num_values()) return invalid("{}: reads a value that does not exist", where());
    const NodeId producer = g.value(v).producer;
    if (producer != kNoNode && producer.index >= index) {
      return invalid("{}: reads '{}' before it is produced", where(), g.value(v).name);
    }
  }
  for (ValueId v : node.outputs) {
    if (v == kNoValue) continue;
    if (v.index >= g.num_values()) return invalid("{}: writes a value that does not exist", where());
    if (g.value(v).producer != NodeId{index}) {
      return invalid("{}: '{}' has another producer", where(), g.value(v).name);
    }
  }
  return {};
}

Status check_update(const Graph& g, const Output& o, std::set<ValueId>& targets) {
  if (o.into.index >= g.num_values()) return invalid("output '{}': what it updates does not exist", o.name);
  const Value& target = g.value(o.into);
  if (target.role != Role::kParameter && target.role != Role::kState) {
    return invalid("output '{}' updates '{}', which is neither a parameter nor state", o.name, target.name);
  }
  if (target.type != g.type(o.value)) {
    return invalid("output '{}' has type {}, '{}' has {}", o.name, g.type(o.value).to_string(), target.name,
                   target.type.to_string());
  }
  if (!targets.insert(o.into).second) return invalid("'{}' is updated twice", target.name);
  return {};
}

}  // namespace

Status verify_structure(const Graph& g) {
  for (uint32_t n = 0; n < g.num_nodes(); ++n) LIMBER_TRY(check_node(g, n));
  for (uint32_t v = 0; v < g.num_values(); ++v) LIMBER_TRY(check_value(g, ValueId{v}));
  for (ValueId v : g.inputs()) {
    if (v.index >= g.num_values() || g.value(v).role != Role::kInput)
      return invalid("graph input {} is not an input", v.index);
  }
  std::set<std::string_view> names;
  std::set<ValueId> targets;
  for (const Output& o : g.outputs()) {
    if (o.value.index >= g.num_values()) return invalid("output '{}': its value does not exist", o.name);
    if (o.rows != kNoValue && o.rows.index >= g.num_values())
      return invalid("output '{}': its row count does not exist", o.name);
    if (!names.insert(o.name).second) return invalid("output '{}' is listed twice", o.name);
    if (o.into != kNoValue) LIMBER_TRY(check_update(g, o, targets));
  }
  return {};
}

}  // namespace limber
