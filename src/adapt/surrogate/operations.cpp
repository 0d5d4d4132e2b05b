#include "adapt/surrogate/operations.h"

#include "ops/op_def.h"

namespace limber::adapt {

Result<OperationCount> OperationCount::of(const Graph& graph, const ChannelGroups& groups) {
  std::map<std::string, int64_t> ones;
  for (const std::string& name : symbols(graph)) ones[name] = 1;
  LIMBER_ASSIGN(const Graph bound, limber::bind(graph, ones));
  OperationCount count;
  for (const ChannelGroup& group : groups.groups) count.units_.push_back(group.units);
  for (uint32_t n = 0; n < bound.num_nodes(); ++n) {
    const Node& node = bound.node(NodeId{n});
    const bool product = node.op == OpKind::kConv || node.op == OpKind::kGemm || node.op == OpKind::kMatMul;
    if (!product) continue;
    Term term{node_flops(bound, NodeId{n}), {}, {}};
    const auto weights = graph.find(bound.value(node.inputs[1]).name);
    for (size_t g = 0; g < groups.groups.size(); ++g) {
      for (const ChannelSpan& span : groups.groups[g].spans) {
        if (span.value != weights || span.axis > 1) continue;
        const auto size = static_cast<double>(graph.type(span.value).shape.dim(span.axis));
        (span.axis == 0 ? term.rows : term.columns).push_back({g, static_cast<double>(span.per_unit) / size});
      }
    }
    count.terms_.push_back(std::move(term));
  }
  return count;
}

double OperationCount::left(const std::vector<Part>& parts, std::span<const int64_t> kept) const {
  double share = 1;
  for (const Part& part : parts)
    share -= part.per_unit * static_cast<double>(units_[part.group] - kept[part.group]);
  return share;
}

double OperationCount::at(std::span<const int64_t> kept) const {
  double sum = 0;
  for (const Term& term : terms_) sum += term.flops * left(term.rows, kept) * left(term.columns, kept);
  return sum;
}

}  // namespace limber::adapt
