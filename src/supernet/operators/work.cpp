#include "supernet/operators/work.h"

#include <algorithm>
#include <cmath>

#include "ops/op_def.h"
#include "runtime/choice.h"

namespace limber {

bool is_layer(const Graph& graph, const Node& node, const std::vector<bool>& statics) {
  const bool product = node.op == OpKind::kConv || node.op == OpKind::kConvTranspose ||
                       node.op == OpKind::kGemm || node.op == OpKind::kMatMul;
  if (!product || statics[node.inputs[0].index]) return false;
  return statics[node.inputs[1].index] && graph.type(node.inputs[1]).rank() >= 2;
}

int64_t parameter_elements(const Graph& graph) {
  int64_t sum = 0;
  for (const Value& value : graph.values()) {
    const bool stored = value.role == Role::kParameter || value.role == Role::kState;
    if (stored) sum += value.type.shape.elements();
  }
  return sum;
}

int64_t round_channels(double wanted) {
  const int64_t step = wanted >= 12 ? 16 : wanted >= 6 ? 8 : wanted >= 3 ? 4 : 1;
  return std::max<int64_t>(1, std::lround(wanted / static_cast<double>(step)) * step);
}

Result<Graph> bind_one(const Graph& graph) {
  std::map<std::string, int64_t> ones;
  for (const std::string& name : symbols(graph)) ones[name] = 1;
  return limber::bind(graph, ones);
}

Result<double> graph_flops(const Graph& graph) {
  LIMBER_ASSIGN(const Graph bound, bind_one(graph));
  const std::vector<bool> statics = static_values(bound);
  double sum = 0;
  for (uint32_t n = 0; n < bound.num_nodes(); ++n) {
    if (!is_static_node(bound, statics, NodeId{n})) sum += node_flops(bound, NodeId{n});
  }
  return sum;
}

}  // namespace limber
