#include "adapt/master/spread_gates.h"

#include <algorithm>
#include <optional>

#include "passes/channel_rank.h"

namespace limber::adapt {
namespace {

// Beyond these a filter would hardly learn, or outweigh all others whatever its image.
constexpr double kLeast = 0.3, kMost = 3;

// The node whose channels the gate multiplies.
NodeId gated_node(const Graph& graph, const FilterGate& gate,
                  const std::vector<std::vector<NodeId>>& readers) {
  for (const NodeId wide : readers[gate.value.index]) {
    if (graph.node(wide).op != OpKind::kReshape) continue;
    const ValueId factor = graph.node(wide).outputs[0];
    for (const NodeId product : readers[factor.index]) {
      const Node& node = graph.node(product);
      if (node.op != OpKind::kMul) continue;
      return graph.value(node.inputs[node.inputs[0] == factor ? 1 : 0]).producer;
    }
  }
  return kNoNode;
}

// What scales the channels of a layer: scale and shift of a normalisation, or weights and bias.
std::vector<ValueId> scaling_parameters(const Graph& graph, NodeId layer,
                                        const std::vector<std::vector<NodeId>>& readers) {
  if (layer == kNoNode) return {};
  const Node& node = graph.node(layer);
  if (node.op != OpKind::kBatchNorm && node.op != OpKind::kConv) return {};
  std::vector<ValueId> found;
  for (size_t i = 1; i < std::min<size_t>(node.inputs.size(), 3); ++i) {
    const ValueId v = node.inputs[i];
    if (v == kNoValue) continue;
    const Value& value = graph.value(v);
    if (value.role != Role::kParameter || value.type.dtype != DType::kF32 || readers[v.index].size() != 1)
      return {};
    found.push_back(v);
  }
  return found;
}

class GateSpreader {
 public:
  GateSpreader(const Master& master, Parameters& params)
      : master_(master), params_(params), readers_(master.graph.readers()) {}

  Status run() {
    for (size_t g = 0; g < master_.groups.groups.size(); ++g) {
      const ChannelGroup& group = master_.groups.groups[g];
      LIMBER_ASSIGN(const auto scores, unit_scores(master_.graph, group, params_));
      for (const GatedSpan& span : master_.spans[g]) {
        for (int64_t unit = 0; unit < group.units; ++unit) {
          const double factor = std::clamp(scores[static_cast<size_t>(unit)], kLeast, kMost);
          for (const int64_t filter : span.of(unit)) LIMBER_TRY(move(span.gate, filter, factor));
        }
      }
    }
    return {};
  }

 private:
  Status move(size_t gate, int64_t filter, double factor) {
    const FilterGate& one = master_.gates[gate];
    const auto scaling =
        scaling_parameters(master_.graph, gated_node(master_.graph, one, readers_), readers_);
    if (scaling.empty()) return {};
    for (const ValueId v : scaling) LIMBER_TRY(multiply(master_.graph.value(v).name, filter, 1 / factor));
    return multiply(one.bias, filter, factor);
  }

  // Index `filter` of the first axis.
  Status multiply(const std::string& name, int64_t filter, double factor) {
    LIMBER_ASSIGN(Tensor tensor, params_.writable(name));
    const auto values = tensor.data<float>();
    const size_t width = values.size() / static_cast<size_t>(tensor.shape().dim(0));
    for (float& x : values.subspan(static_cast<size_t>(filter) * width, width))
      x = static_cast<float>(static_cast<double>(x) * factor);
    params_.mark_changed(std::vector{name});
    return {};
  }

  const Master& master_;
  Parameters& params_;
  const std::vector<std::vector<NodeId>> readers_;
};

}  // namespace

Status spread_gates(const Master& master, Parameters& params) { return GateSpreader(master, params).run(); }

}  // namespace limber::adapt
