#include "passes/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ops/op_def.h"
#include "passes/classifier.h"

namespace limber {
namespace {

constexpr std::array<std::string_view, 3> kAnswerNames = {"classes", "places", "values"};
// Names of nodes, by which a joined graph is known.
constexpr std::string_view kJoined = "joined", kFlattened = "joined/";

// Elements of a sample; 0 when that is not known.
int64_t elements_per_sample(const TensorType& type) {
  int64_t product = 1;
  for (int axis = 1; axis < type.rank(); ++axis) {
    if (!type.shape[axis].is_constant()) return 0;
    product *= type.shape[axis].value();
  }
  return product;
}

// The node that makes a value, when it is of this kind.
const Node* maker_of(const Graph& graph, ValueId value, OpKind op) {
  const NodeId producer = graph.value(value).producer;
  if (producer == kNoNode || graph.node(producer).op != op) return nullptr;
  return &graph.node(producer);
}

// Null: the graph is not one of join_outputs(). A stranger's may have a node of that name.
const Node* joining_node(const Graph& graph) {
  if (graph.outputs().size() != 1) return nullptr;
  const Node* const node = maker_of(graph, graph.outputs()[0].value, OpKind::kConcat);
  if (node == nullptr || node->name != kJoined) return nullptr;
  const bool ours = std::all_of(node->inputs.begin(), node->inputs.end(), [&](ValueId flat) {
    const Node* const reshape = maker_of(graph, flat, OpKind::kReshape);
    return reshape != nullptr && reshape->name.starts_with(kFlattened);
  });
  return ours ? node : nullptr;
}

Status check_joinable(const Graph& graph, const Output& output) {
  const TensorType& type = graph.type(output.value);
  const Dim batch = graph.type(graph.inputs()[0]).shape[0];
  const bool fits = output.into == kNoValue && output.rows == kNoValue && type.dtype == DType::kF32 &&
                    type.rank() >= 1 && type.shape[0] == batch && elements_per_sample(type) > 0;
  if (fits) return {};
  return unsupported(
      "output '{}' is {}; of several outputs each must be f32[{},..] with a size that does not depend on the "
      "image. Export the model without what comes last, such as the selection of boxes",
      output.name, type.to_string(), Shape{batch}.to_string());
}

}  // namespace

std::string_view answers_name(Answers answers) { return kAnswerNames[static_cast<size_t>(answers)]; }

Status check_answers(const Graph& model, Answers answers) {
  if (answers == Answers::kClasses) return count_classes(model).status();
  if (model.outputs().empty()) return invalid("the model has no output");
  const TensorType& type = model.type(model.outputs()[0].value);
  bool fits = type.dtype == DType::kF32 && type.rank() >= 1 && elements_per_sample(type) > 0;
  if (answers == Answers::kPlaces) fits = fits && type.rank() >= 3 && type.shape[1].value() > 1;
  if (fits) return {};
  return invalid("the model's first output is {}; expected {}", type.to_string(),
                 answers == Answers::kPlaces ? "f32[N,classes,places..] with two classes or more"
                                             : "f32[N,..] of a size that is known");
}

Graph answers_of(const Graph& model, Answers answers) {
  if (answers != Answers::kValues) return logits_of(model);
  Graph graph = model;
  graph.mutable_outputs().resize(1);
  graph.compact();
  return graph;
}

Result<Graph> join_outputs(const Graph& model) {
  if (model.outputs().size() < 2) return model;
  if (model.inputs().size() != 1)
    return unsupported("model '{}' has {} inputs, expected one", model.name, model.inputs().size());
  Graph graph = model;
  const std::vector<Output> outputs = graph.outputs();
  std::vector<ValueId> flat;
  for (const Output& output : outputs) {
    LIMBER_TRY(check_joinable(graph, output));
    const TensorType type = graph.type(output.value);
    const Shape shape{type.shape[0], elements_per_sample(type)};
    LIMBER_ASSIGN(const ValueId one, emit(graph, OpKind::kReshape, {output.value}, {{"shape", shape}},
                                          fmt::format("{}{}", kFlattened, output.name)));
    flat.push_back(one);
  }
  LIMBER_ASSIGN(const ValueId all,
                emit(graph, OpKind::kConcat, flat, {{"axis", int64_t{1}}}, std::string(kJoined)));
  graph.mutable_outputs().clear();
  graph.add_output(all, std::string(kJoined));
  return graph;
}

Graph split_outputs(const Graph& joined) {
  const Node* const node = joining_node(joined);
  if (node == nullptr) return joined;
  Graph graph = joined;
  graph.mutable_outputs().clear();
  for (const ValueId flat : node->inputs) {
    const Node& reshape = joined.node(joined.value(flat).producer);
    graph.add_output(reshape.inputs[0], reshape.name.substr(kFlattened.size()));
  }
  graph.compact();
  return graph;
}

std::vector<int64_t> output_sizes(const Graph& graph) {
  std::vector<int64_t> sizes;
  if (const Node* const node = joining_node(graph)) {
    for (const ValueId flat : node->inputs) sizes.push_back(elements_per_sample(graph.type(flat)));
    return sizes;
  }
  return {elements_per_sample(graph.type(graph.outputs()[0].value))};
}

}  // namespace limber
