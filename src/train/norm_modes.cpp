#include "train/norm_modes.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "passes/rewriter.h"

namespace limber {
namespace {

// PyTorch's default of 0.1, in ONNX's way of counting.
constexpr double kRunningMomentum = 0.9;

// By value: does it depend on one of the parameters of these names?
std::vector<bool> depend_on(const Graph& graph, std::span<const std::string> names) {
  const std::set<std::string_view> wanted(names.begin(), names.end());
  std::vector<bool> depends(graph.num_values(), false);
  for (size_t v = 0; v < graph.num_values(); ++v) depends[v] = wanted.count(graph.values()[v].name) > 0;
  for (const Node& node : graph.nodes()) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [&](ValueId v) { return v != kNoValue && depends[v.index]; });
    for (ValueId v : node.outputs) {
      if (v != kNoValue) depends[v.index] = any;
    }
  }
  return depends;
}

}  // namespace

void use_batch_statistics(Graph& graph) {
  std::vector<int> uses(graph.num_values(), 0);
  for (const Node& node : graph.nodes()) {
    for (const ValueId v : node.inputs) {
      if (v != kNoValue) ++uses[v.index];
    }
  }
  const auto is_own = [&](ValueId v) {
    return graph.value(v).role == Role::kParameter && uses[v.index] == 1;
  };
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node node = graph.node(NodeId{n});
    if (node.op != OpKind::kBatchNorm && node.op != OpKind::kBatchNormTraining) continue;
    const ValueId mean = node.inputs[3], var = node.inputs[4];
    if (!is_own(mean) || !is_own(var)) continue;
    if (node.op == OpKind::kBatchNorm) {
      graph.mutable_node(NodeId{n}).op = OpKind::kBatchNormTraining;
      graph.mutable_node(NodeId{n}).attrs.set("momentum", kRunningMomentum);
    }
    const auto output = [&](size_t k, const char* name) {
      if (k < node.outputs.size() && node.outputs[k] != kNoValue) return node.outputs[k];
      return graph.add_optional_output(NodeId{n}, k, graph.type(node.inputs[k + 2]), node.name + name);
    };
    graph.add_update(mean, output(1, "/mean"));
    graph.add_update(var, output(2, "/var"));
  }
}

Status fuse_batch_norm_relu(Graph& graph) {
  return sweep(graph,
               [](Rewriter& r, NodeId n) -> Status {
                 if (r.node(n).op != OpKind::kRelu) return {};
                 const ValueId x = r.input(n, 0);
                 const NodeId norm = r.producer(x, OpKind::kBatchNormTraining);
                 if (norm == kNoNode || !r.used_once(x) || r.node(norm).attrs.has("act")) return {};
                 if (!r.replace(r.output(n), x)) return {};
                 r.edit_attrs(norm).set("act", std::string("relu"));
                 return {};
               })
      .status();
}

Status freeze_unchanged_norms(Graph& graph, std::span<const std::string> names) {
  const std::vector<bool> changes = depend_on(graph, names);
  const auto unchanged = [&](NodeId n) {
    const Node& node = graph.node(n);
    return node.op == OpKind::kBatchNormTraining && !changes[node.outputs[0].index];
  };
  std::erase_if(graph.mutable_outputs(), [&](const Output& o) {
    const NodeId maker = graph.value(o.value).producer;
    return o.into != kNoValue && maker != kNoNode && unchanged(maker);
  });
  return sweep(graph,
               [&](Rewriter& r, NodeId n) -> Status {
                 if (!unchanged(n)) return {};
                 const Node node = r.node(n);
                 LIMBER_ASSIGN(ValueId y, r.emit(OpKind::kBatchNorm, node.inputs,
                                                 {{"epsilon", node.attrs.f("epsilon")}}, node.name));
                 if (node.attrs.s("act", "") == "relu") {
                   LIMBER_ASSIGN(y, r.emit(OpKind::kRelu, {y}, {}, node.name));
                 }
                 r.replace(node.outputs[0], y);
                 return {};
               })
      .status();
}

}  // namespace limber
