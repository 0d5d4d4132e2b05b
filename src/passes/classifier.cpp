#include "passes/classifier.h"

#include <algorithm>
#include <cmath>

namespace limber {

Graph logits_of(const Graph& model) {
  Graph graph = model;
  graph.mutable_outputs().resize(1);
  Output& output = graph.mutable_outputs()[0];
  const NodeId producer = graph.value(output.value).producer;
  if (producer == kNoNode) return graph;
  const Node& node = graph.node(producer);
  if (node.op != OpKind::kSoftmax && node.op != OpKind::kLogSoftmax) return graph;
  output.value = node.inputs[0];
  graph.compact();
  return graph;
}

Result<int64_t> count_classes(const Graph& model) {
  if (model.outputs().empty()) return invalid("the model has no output");
  const TensorType& type = model.type(model.outputs()[0].value);
  bool fits = type.dtype == DType::kF32 && type.rank() >= 2 && type.shape[1].is_constant();
  for (int axis = 2; fits && axis < type.rank(); ++axis) fits = type.shape[axis] == Dim(1);
  if (fits) return type.shape[1].value();
  return invalid("the model's first output is {}; a classifier has f32[N,classes]", type.to_string());
}

bool among_best(std::span<const float> logits, int64_t label, int64_t count) {
  const auto own = static_cast<size_t>(label);
  int64_t better = 0;
  for (size_t i = 0; i < logits.size(); ++i)
    better += logits[i] > logits[own] || (logits[i] == logits[own] && i < own) ? 1 : 0;
  return better < count && !std::isnan(logits[own]);
}

double confidence_of(std::span<const float> logits) {
  const double peak = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - peak);
  return sum > 0 ? 1 / sum : 0;  // not a number: not sure at all
}

}  // namespace limber
