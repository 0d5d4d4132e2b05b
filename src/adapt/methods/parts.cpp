#include "adapt/methods/parts.h"

#include <algorithm>

#include "train/head.h"

namespace limber::adapt {

std::vector<NormNames> norms_of(const Graph& graph) {
  std::vector<NormNames> norms;
  for (const Node& node : graph.nodes()) {
    if (node.op != OpKind::kBatchNorm && node.op != OpKind::kBatchNormTraining) continue;
    const bool own = std::all_of(node.inputs.begin() + 1, node.inputs.begin() + 5, [&](ValueId v) {
      return graph.value(v).role == Role::kParameter || graph.value(v).role == Role::kState;
    });
    if (!own) continue;
    const auto name = [&](size_t input) { return graph.value(node.inputs[input]).name; };
    norms.push_back({name(1), name(2), name(3), name(4)});
  }
  return norms;
}

Result<std::vector<NormNames>> some_norms_of(const Graph& graph, std::string_view method) {
  std::vector<NormNames> norms = norms_of(graph);
  if (norms.empty()) {
    return invalid(
        "'{}' adapts batch normalisation, and the model has none with weights of its own; load it before "
        "normalisation is folded away, or choose another method",
        method);
  }
  return norms;
}

std::vector<std::string> affine_names(const std::vector<NormNames>& norms) {
  std::vector<std::string> names;
  for (const NormNames& norm : norms) {
    names.push_back(norm.scale);
    names.push_back(norm.bias);
  }
  return names;
}

Result<std::vector<std::string>> head_names(const Graph& logits) {
  LIMBER_ASSIGN(const Head head, find_head(logits, logits.outputs()[0].value));
  std::vector<std::string> names = {logits.value(head.weight).name};
  if (head.bias != kNoValue) names.push_back(logits.value(head.bias).name);
  return names;
}

void forget_optimizer(Parameters& params) {
  for (const std::string& name : params.names()) {
    if (name.starts_with("optimizer/")) params.erase(name);
  }
}

}  // namespace limber::adapt
