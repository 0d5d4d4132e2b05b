#include "passes/slice_channels.h"

#include <algorithm>
#include <numeric>

#include "ops/op_def.h"
#include "passes/slice_attrs.h"

namespace limber {
namespace {

Status check_units(const ChannelGroup& group, const std::vector<int64_t>& kept) {
  if (kept.empty()) return invalid("group '{}' keeps none of its {} units", group.name, group.units);
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] < 0 || kept[i] >= group.units)
      return invalid("group '{}' has {} units, there is no unit {}", group.name, group.units, kept[i]);
    if (i > 0 && kept[i] <= kept[i - 1])
      return invalid("group '{}': units to keep must ascend, {} follows {}", group.name, kept[i],
                     kept[i - 1]);
  }
  return {};
}

class ChannelSlicer {
 public:
  ChannelSlicer(const Graph& graph, const ChannelGroups& groups, std::span<const std::vector<int64_t>> kept)
      : graph_(graph), groups_(groups), chosen_(kept) {}

  Result<SlicedGraph> run() {
    LIMBER_TRY(find_kept());
    result_.graph = graph_;
    if (kept_.empty()) return std::move(result_);
    for (uint32_t v = 0; v < graph_.num_values(); ++v) LIMBER_TRY(leaf(ValueId{v}));
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      if (Status status = node(NodeId{n}); !status.ok())
        return status.in(fmt::format("node '{}'", graph_.node(NodeId{n}).name));
    }
    return std::move(result_);
  }

 private:
  Status find_kept() {
    if (chosen_.size() != groups_.groups.size()) {
      return invalid("{} lists of units for {} channel groups", chosen_.size(), groups_.groups.size());
    }
    std::map<std::pair<ValueId, int>, std::vector<bool>> dropped;
    for (size_t g = 0; g < chosen_.size(); ++g) {
      const ChannelGroup& group = groups_.groups[g];
      LIMBER_TRY(check_units(group, chosen_[g]));
      if (chosen_[g].size() == static_cast<size_t>(group.units)) continue;
      for (const ChannelSpan& span : group.spans) {
        LIMBER_TRY(check_span(group, span));
        auto& gone = dropped[{span.value, span.axis}];
        gone.resize(static_cast<size_t>(graph_.type(span.value).shape.dim(span.axis)), false);
        for (int64_t unit = 0; unit < group.units; ++unit) {
          if (std::binary_search(chosen_[g].begin(), chosen_[g].end(), unit)) continue;
          for (int64_t index : span.of(unit)) gone[static_cast<size_t>(index)] = true;
        }
      }
    }
    for (const auto& [place, gone] : dropped) {
      auto& indices = kept_[place];
      for (size_t i = 0; i < gone.size(); ++i) {
        if (!gone[i]) indices.push_back(static_cast<int64_t>(i));
      }
    }
    return {};
  }

  Status check_span(const ChannelGroup& group, const ChannelSpan& span) const {
    const bool there = span.value.index < graph_.num_values() && span.axis < graph_.type(span.value).rank() &&
                       graph_.type(span.value).shape[span.axis].is_constant();
    const int64_t size = there ? graph_.type(span.value).shape.dim(span.axis) : 0;
    const bool fits = span.indices.size() == static_cast<size_t>(group.units * span.per_unit) &&
                      std::all_of(span.indices.begin(), span.indices.end(),
                                  [size](int64_t i) { return i >= 0 && i < size; });
    if (fits) return {};
    return invalid("group '{}' was found in another graph than '{}'", group.name, graph_.name);
  }

  SlicedTensor describe(ValueId v) const {
    const Value& value = graph_.value(v);
    SlicedTensor slice{value.name, value.type, value.type, {}};
    for (auto it = kept_.lower_bound({v, 0}); it != kept_.end() && it->first.first == v; ++it) {
      slice.axes.push_back({it->first.second, it->second});
      slice.small.shape[it->first.second] = Dim(static_cast<int64_t>(it->second.size()));
    }
    return slice;
  }

  Status leaf(ValueId v) {
    const Role role = graph_.value(v).role;
    if (role == Role::kActivation || role == Role::kInput) return {};
    SlicedTensor slice = describe(v);
    if (slice.axes.empty()) return {};
    Value& value = result_.graph.mutable_value(v);
    value.type = slice.small;
    if (role == Role::kConstant) {
      LIMBER_ASSIGN(value.constant, take(slice, graph_.value(v).constant));
    } else {
      result_.tensors.push_back(std::move(slice));
    }
    return {};
  }

  bool touched(const Node& node) const {
    const auto shrank = [this](ValueId v) {
      if (v == kNoValue) return false;
      const auto it = kept_.lower_bound({v, 0});
      return it != kept_.end() && it->first.first == v;
    };
    return std::any_of(node.inputs.begin(), node.inputs.end(), shrank) ||
           std::any_of(node.outputs.begin(), node.outputs.end(), shrank);
  }

  Status node(NodeId n) {
    const Node& before = graph_.node(n);
    if (!touched(before)) return {};
    Graph& graph = result_.graph;
    graph.mutable_node(n).attrs = sliced_attrs(graph_, before, kept_);
    if (before.op == OpKind::kGather) renumber(n);
    const Node& after = graph.node(n);
    LIMBER_ASSIGN(const auto types, infer_types(graph, after.op, after.inputs, after.attrs,
                                                static_cast<int>(after.outputs.size())));
    for (size_t i = 0; i < types.size(); ++i) {
      const ValueId v = after.outputs[i];
      if (v == kNoValue) continue;
      if (const TensorType expected = describe(v).small; types[i] != expected) {
        return error(Code::kInternal, "'{}' has type {} after slicing, expected {}", graph.value(v).name,
                     types[i].to_string(), expected.to_string());
      }
      graph.mutable_value(v).type = types[i];
    }
    return {};
  }

  void renumber(NodeId n) {
    const Node& before = graph_.node(n);
    const auto axis = static_cast<int>(before.attrs.i("axis"));
    const auto it = kept_.find({before.inputs[0], axis});
    if (it == kept_.end()) return;
    Graph& graph = result_.graph;
    const Value& list = graph.value(graph.node(n).inputs[1]);
    const int64_t size = graph_.type(before.inputs[0]).shape.dim(axis);
    Tensor numbers = renumbered(list.constant, size, it->second);
    const std::string name = list.name;
    graph.mutable_node(n).inputs[1] = graph.add_constant(name, std::move(numbers));
  }

  const Graph& graph_;
  const ChannelGroups& groups_;
  const std::span<const std::vector<int64_t>> chosen_;
  KeptIndices kept_;
  SlicedGraph result_;
};

}  // namespace

Result<SlicedGraph> slice_channels(const Graph& graph, const ChannelGroups& groups,
                                   std::span<const std::vector<int64_t>> kept) {
  LIMBER_ASSIGN(SlicedGraph sliced, ChannelSlicer(graph, groups, kept).run());
  if (sliced.graph.num_values() != graph.num_values()) sliced.graph.compact();  // lists that were replaced
  return sliced;
}

std::vector<std::vector<int64_t>> all_units(const ChannelGroups& groups) {
  std::vector<std::vector<int64_t>> units;
  for (const ChannelGroup& group : groups.groups) {
    auto& all = units.emplace_back(static_cast<size_t>(group.units));
    std::iota(all.begin(), all.end(), int64_t{0});
  }
  return units;
}

Status slice_parameters(const SlicedGraph& sliced, const Parameters& from, Parameters& to) {
  std::map<std::string_view, const SlicedTensor*> shrunk;
  for (const SlicedTensor& slice : sliced.tensors) shrunk.emplace(slice.name, &slice);
  for (const Value& value : sliced.graph.values()) {
    if (value.role != Role::kParameter && value.role != Role::kState) continue;
    LIMBER_ASSIGN(Tensor tensor, from.get(value.name));
    if (const auto it = shrunk.find(value.name); it != shrunk.end()) {
      LIMBER_ASSIGN(tensor, take(*it->second, tensor));
    } else {
      LIMBER_ASSIGN(tensor, tensor.copy());
    }
    to.set(value.name, std::move(tensor));
  }
  return {};
}

void rename_parameters(Graph& graph, std::string_view prefix,
                       const std::function<bool(const Value&)>& which) {
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    const Value& value = graph.value(ValueId{v});
    if (value.role != Role::kParameter && value.role != Role::kState) continue;
    if (which && !which(value)) continue;
    const std::string before = value.name;
    graph.rename(ValueId{v}, fmt::format("{}{}", prefix, before));
    for (Output& o : graph.mutable_outputs()) {
      if (o.into == ValueId{v} && o.name == before) o.name = graph.value(ValueId{v}).name;
    }
  }
}

}  // namespace limber
