#include "passes/channel_groups.h"

#include <algorithm>
#include <map>
#include <set>

#include "passes/channel_rules.h"

namespace limber {
namespace {

ChannelAtoms tied_atoms(const Graph& graph) {
  ChannelAtoms atoms(graph);
  const auto readers = graph.readers();
  for (ValueId v : graph.inputs()) atoms.pin_all(v);
  for (const Node& node : graph.nodes()) channels::tie_node({graph, readers, atoms, node});
  for (const Output& o : graph.outputs()) {
    if (o.into != kNoValue) {
      atoms.tie_broadcast(o.value, o.into);
    } else {
      atoms.pin_all(o.value);
    }
    if (o.rows != kNoValue) atoms.pin_all(o.rows);
  }
  return atoms;
}

bool is_stored(const Value& value) { return value.role == Role::kParameter || value.role == Role::kState; }

using Place = std::pair<ValueId, int>;  // one axis of a value

// What is tied together, by place.
using Unit = std::map<Place, std::vector<int64_t>>;

// By root. Smaller roots come first, and with them the values they lie in.
std::map<ChannelAtoms::Atom, Unit> find_units(const Graph& graph) {
  ChannelAtoms atoms = tied_atoms(graph);
  std::map<ChannelAtoms::Atom, Unit> units;
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    for (int axis = 0; axis < graph.type(ValueId{v}).rank(); ++axis) {
      if (!atoms.tracked(ValueId{v}, axis)) continue;
      for (int64_t i = 0; i < atoms.size(ValueId{v}, axis); ++i) {
        const auto atom = atoms.atom(ValueId{v}, axis, i);
        if (!atoms.pinned(atom)) units[atoms.root(atom)][{ValueId{v}, axis}].push_back(i);
      }
    }
  }
  return units;
}

// Made by a node and held by a parameter: everything else is of no use as a channel.
bool is_channel(const Graph& graph, const Unit& unit) {
  const auto any = [&](auto&& test) {
    return std::any_of(unit.begin(), unit.end(),
                       [&](const auto& entry) { return test(graph.value(entry.first.first)); });
  };
  return any(is_stored) && any([](const Value& value) { return value.role == Role::kActivation; });
}

using Signature = std::vector<std::pair<Place, size_t>>;

Signature signature_of(const Unit& unit) {
  Signature signature;
  for (const auto& [place, indices] : unit) signature.emplace_back(place, indices.size());
  return signature;
}

int64_t elements_per_unit(const Graph& graph, const ChannelGroup& group) {
  std::map<ValueId, std::pair<double, double>> stored;  // all elements, and those a dropped unit leaves
  for (const ChannelSpan& span : group.spans) {
    const Value& value = graph.value(span.value);
    if (!is_stored(value) || !value.type.shape.is_constant()) continue;
    const auto all = static_cast<double>(value.type.shape.elements());
    const auto [it, fresh] = stored.try_emplace(span.value, all, all);
    it->second.second *=
        1 - static_cast<double>(span.per_unit) / static_cast<double>(value.type.shape.dim(span.axis));
  }
  double elements = 0;
  for (const auto& [value, counts] : stored) elements += counts.first - counts.second;
  return static_cast<int64_t>(elements + 0.5);
}

ChannelGroup make_group(const Graph& graph, const Signature& signature,
                        const std::vector<const Unit*>& units) {
  ChannelGroup group;
  group.units = static_cast<int64_t>(units.size());
  std::set<std::string> parameters;
  for (const auto& [place, count] : signature) {
    const auto [value, axis] = place;
    ChannelSpan span{value, axis, static_cast<int64_t>(count), {}};
    for (const Unit* unit : units) {
      const auto& indices = unit->at(place);
      span.indices.insert(span.indices.end(), indices.begin(), indices.end());
    }
    if (is_stored(graph.value(value))) parameters.insert(graph.value(value).name);
    group.spans.push_back(std::move(span));
  }
  group.parameters.assign(parameters.begin(), parameters.end());
  group.elements_per_unit = elements_per_unit(graph, group);
  return group;
}

// By value: is it computed from an input?
std::vector<bool> computed_from_inputs(const Graph& graph) {
  std::vector<bool> computed(graph.num_values(), false);
  for (ValueId v : graph.inputs()) computed[v.index] = true;
  for (const Node& node : graph.nodes()) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [&](ValueId v) { return v != kNoValue && computed[v.index]; });
    for (ValueId v : node.outputs) {
      if (v != kNoValue) computed[v.index] = any;
    }
  }
  return computed;
}

// The first node of `computed` values that makes channels of the group; else the first of all.
NodeId first_node(const Graph& graph, const ChannelGroup& group, const std::vector<bool>& computed) {
  NodeId first = kNoNode, first_of_all = kNoNode;
  for (const ChannelSpan& span : group.spans) {
    const NodeId producer = graph.value(span.value).producer;
    first_of_all = std::min(first_of_all, producer);
    if (computed[span.value.index]) first = std::min(first, producer);
  }
  return first == kNoNode ? first_of_all : first;
}

std::string name_of(const Graph& graph, NodeId node) {
  const Node& made_by = graph.node(node);
  return made_by.name.empty() ? graph.value(made_by.outputs[0]).name : made_by.name;
}

}  // namespace

ChannelGroups channel_groups(const Graph& graph) {
  const auto units = find_units(graph);
  std::map<Signature, std::vector<const Unit*>> alike;
  std::vector<Signature> order;  // of the first unit
  for (const auto& [root, unit] : units) {
    if (!is_channel(graph, unit)) continue;
    auto& members = alike[signature_of(unit)];
    if (members.empty()) order.push_back(signature_of(unit));
    members.push_back(&unit);
  }
  const std::vector<bool> computed = computed_from_inputs(graph);
  std::vector<std::pair<NodeId, ChannelGroup>> found;
  for (const Signature& signature : order) {
    if (alike[signature].size() < 2) continue;  // nothing to choose
    ChannelGroup group = make_group(graph, signature, alike[signature]);
    const NodeId first = first_node(graph, group, computed);
    found.emplace_back(first, std::move(group));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  ChannelGroups result;
  std::map<std::string, int> names;
  for (auto& [node, group] : found) {
    group.name = name_of(graph, node);
    if (const int count = ++names[group.name]; count > 1) group.name += fmt::format("#{}", count);
    result.groups.push_back(std::move(group));
  }
  return result;
}

}  // namespace limber
