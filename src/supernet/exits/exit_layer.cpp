#include "supernet/exits/exit_layer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/op_def.h"
#include "passes/graph_copy.h"
#include "supernet/exits/exit_graph.h"
#include "train/optimizer.h"

namespace limber {
namespace {

// The node that reads the features: dense, or the one that takes those of each class.
Result<const Node*> classifier_of(const Graph& exit) {
  for (const Node& node : exit.nodes()) {
    const bool reads = node.op == OpKind::kGemm || node.op == OpKind::kGather;
    if (reads && node.name == kClassifierName) return &node;
  }
  return invalid("graph '{}' has no linear layer '{}', expected an exit made here", exit.name,
                 kClassifierName);
}

// By class the numbers of the features with the largest weights, rising.
std::vector<int32_t> best_features(const Tensor& weights, int64_t read) {
  const int64_t classes = weights.shape().dim(0), width = weights.shape().dim(1);
  const auto values = weights.data<float>();
  std::vector<int32_t> best, order(static_cast<size_t>(width));
  for (int64_t c = 0; c < classes; ++c) {
    const auto row = values.subspan(static_cast<size_t>(c * width), static_cast<size_t>(width));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return std::abs(row[static_cast<size_t>(a)]) > std::abs(row[static_cast<size_t>(b)]);
    });
    std::sort(order.begin(), order.begin() + read);
    best.insert(best.end(), order.begin(), order.begin() + read);
  }
  return best;
}

Tensor taken(const Tensor& weights, std::span<const int32_t> features) {
  const int64_t classes = weights.shape().dim(0), width = weights.shape().dim(1);
  const int64_t read = static_cast<int64_t>(features.size()) / classes;
  std::vector<float> values;
  for (size_t i = 0; i < features.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / read * width;
    values.push_back(weights.data<float>()[static_cast<size_t>(row + features[i])]);
  }
  return Tensor::from(std::span<const float>(values), {classes, read});
}

struct SparseWeights {
  ValueId features, weights, bias;
  int64_t classes, read;
};

// [N, features] -> [N, classes]
Result<ValueId> sparse_layer(Graph& graph, ValueId x, const SparseWeights& w) {
  const std::string name(kClassifierName);
  const Dim batch = graph.type(x).shape[0];
  LIMBER_ASSIGN(x, emit(graph, OpKind::kGather, {x, w.features}, {{"axis", int64_t{1}}}, name));
  LIMBER_ASSIGN(
      x, emit(graph, OpKind::kReshape, {x}, {{"shape", Shape{batch, w.classes, w.read}}}, name + "/shape"));
  LIMBER_ASSIGN(x, emit(graph, OpKind::kMul, {x, w.weights}, {}, name + "/weigh"));
  LIMBER_ASSIGN(x, emit(graph, OpKind::kReduceSum, {x},
                        {{"axes", std::vector<int64_t>{2}}, {"keepdims", int64_t{0}}}, name + "/sum"));
  return emit(graph, OpKind::kAdd, {x, w.bias}, {}, name + "/bias");
}

// The same graph with `replace` in place of the linear layer, whose weights it does not have.
Result<Graph> with_sparse_layer(const Graph& exit, const Node& classifier, int64_t read) {
  const Value& weight = exit.value(classifier.inputs[1]);
  const int64_t classes = weight.type.shape.dim(0);
  Graph graph;
  graph.name = exit.name;
  GraphCopy copy(exit, graph);
  const ValueId input = exit.inputs()[0];
  copy.stand_for(input, graph.add_input(exit.value(input).name, exit.type(input)));
  for (uint32_t v = 0; v < exit.num_values(); ++v) {
    const Value& value = exit.value(ValueId{v});
    const bool stored = value.role == Role::kParameter || value.role == Role::kState;
    if (stored && value.name != weight.name) LIMBER_TRY(copy.share_parameter(ValueId{v}));
  }
  for (const Node& node : exit.nodes()) {
    if (&node != &classifier) {
      copy.node(node);
      continue;
    }
    const SparseWeights sparse{
        .features = graph.add_parameter(weight.name + ".features", {DType::kI32, {classes * read}}),
        .weights = graph.add_parameter(weight.name, {DType::kF32, {classes, read}}),
        .bias = copy.value(node.inputs[2]),
        .classes = classes,
        .read = read};
    LIMBER_ASSIGN(const ValueId y, sparse_layer(graph, copy.value(node.inputs[0]), sparse));
    copy.stand_for(node.outputs[0], y);
  }
  graph.add_output(copy.value(exit.outputs()[0].value), exit.outputs()[0].name);
  LIMBER_TRY(verify(graph));
  return graph;
}

}  // namespace

Result<Graph> with_dropout(const Graph& exit) {
  LIMBER_ASSIGN(const Node* const classifier, classifier_of(exit));
  Graph graph;
  graph.name = exit.name;
  GraphCopy copy(exit, graph);
  const ValueId input = exit.inputs()[0], features = classifier->inputs[0];
  copy.stand_for(input, graph.add_input(exit.value(input).name, exit.type(input)));
  const ValueId mask = graph.add_input(std::string(kDropoutInput), exit.type(features));
  LIMBER_TRY(copy.share_parameters());
  for (const Node& node : exit.nodes()) {
    if (&node == classifier) {
      LIMBER_ASSIGN(const ValueId masked,
                    emit(graph, OpKind::kMul, {copy.value(features), mask}, {}, std::string(kDropoutInput)));
      copy.stand_for(features, masked);
    }
    copy.node(node);
  }
  graph.add_output(copy.value(exit.outputs()[0].value), exit.outputs()[0].name);
  LIMBER_TRY(verify(graph));
  return graph;
}

void draw_dropout(Random& random, double share, std::span<float> mask) {
  LIMBER_ASSERT(share >= 0 && share < 1);
  const auto rest = static_cast<float>(1 / (1 - share));
  for (float& x : mask) x = random.uniform() < share ? 0 : rest;
}

int64_t features_read(int64_t width, double kept) {
  return std::clamp<int64_t>(std::llround(kept * static_cast<double>(width)), 1, width);
}

Status make_sparse(ElasticModel& model, Exit& exit, double kept) {
  LIMBER_ASSIGN(const Node* const classifier, classifier_of(exit.graph));
  if (classifier->op != OpKind::kGemm)
    return invalid("the linear layer of exit '{}' is sparse already", exit.name);
  const std::string name = exit.graph.value(classifier->inputs[1]).name;
  LIMBER_ASSIGN(const Tensor weights, model.params->get(name));
  const int64_t read = features_read(weights.shape().dim(1), kept);
  LIMBER_ASSIGN(Graph graph, with_sparse_layer(exit.graph, *classifier, read));
  const std::vector<int32_t> features = best_features(weights, read);
  for (const std::string& state : optimizer_state(name)) model.params->erase(state);
  model.params->set(name, taken(weights, features));
  model.params->set(name + ".features", Tensor::from(std::span<const int32_t>(features),
                                                     {static_cast<int64_t>(features.size())}));
  exit.graph = std::move(graph);
  return {};
}

}  // namespace limber
