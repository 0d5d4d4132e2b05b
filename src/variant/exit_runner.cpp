#include "variant/exit_runner.h"

#include <algorithm>
#include <cmath>

#include "ops/op_def.h"
#include "passes/classifier.h"
#include "passes/graph_copy.h"
#include "runtime/compile.h"
#include "variant/rows.h"

namespace limber {
namespace {

// Exits that the variant passes, by their places.
std::vector<int> exits_passed(const ElasticModel& model, const Variant& variant) {
  std::vector<int> exits;
  for (size_t e = 0; e < model.exits.size(); ++e) {
    const auto after = static_cast<size_t>(model.exits[e].after);
    if (variant.choices[after] != Variant::kCovered) exits.push_back(static_cast<int>(e));
  }
  std::stable_sort(exits.begin(), exits.end(), [&](int a, int b) {
    return model.exits[static_cast<size_t>(a)].after < model.exits[static_cast<size_t>(b)].after;
  });
  return exits;
}

// What gives its input.
Result<Graph> nothing_between(const ElasticModel& model, int after) {
  Graph graph;
  const bool first = after == 0;
  const Graph& reads =
      first ? model.base : model.blocks[static_cast<size_t>(after) - 1].alternatives[0].graph;
  const TensorType type = first ? reads.type(reads.inputs()[0]) : reads.type(reads.outputs()[0].value);
  LIMBER_ASSIGN(const ValueId x,
                emit(graph, OpKind::kIdentity, {graph.add_input("features", type)}, {}, "nothing"));
  graph.add_output(x, "features");
  return graph;
}

// Blocks [from, to), and what the exit makes of their output as a second output.
Result<Graph> stage_graph(const ElasticModel& model, const Variant& variant, int from, int to, int exit) {
  LIMBER_ASSIGN(Graph graph,
                from == to ? nothing_between(model, to) : materialize_blocks(model, variant, from, to));
  if (exit < 0) return graph;
  const Graph& tail = model.exits[static_cast<size_t>(exit)].graph;
  GraphCopy copy(tail, graph);
  LIMBER_TRY(copy.share_parameters());
  copy.stand_for(tail.inputs()[0], graph.outputs()[0].value);
  for (const Node& node : tail.nodes()) copy.node(node);
  graph.mutable_outputs()[0].name = "features";
  graph.add_output(copy.value(tail.outputs()[0].value), "exit");
  return graph;
}

Result<std::unique_ptr<Session>> stage_session(const Graph& graph, const std::shared_ptr<Parameters>& params,
                                               const std::vector<std::shared_ptr<Backend>>& backends,
                                               int64_t batch, int threads) {
  const CompileSettings how = batch_settings(graph, batch, threads);
  LIMBER_ASSIGN(auto plan, compile(graph, params, backends, how));
  return Session::create(std::move(plan));
}

}  // namespace

Result<std::unique_ptr<ExitRunner>> ExitRunner::create(const ElasticModel& model, const Variant& variant,
                                                       const std::vector<std::shared_ptr<Backend>>& backends,
                                                       const ExitRunnerOptions& options) {
  if (options.batch < 1) return invalid("batches of {} images, expected 1 or more", options.batch);
  LIMBER_TRY(count_classes(model.base).status());
  LIMBER_TRY(check_variant(model, variant));
  if (variant.exit >= 0)
    return invalid("variant '{}' ends with exit {}, expected one that passes exits", print(model, variant),
                   variant.exit);
  std::unique_ptr<ExitRunner> made(new ExitRunner);
  const NodeId last = model.base.value(model.base.outputs()[0].value).producer;
  if (last != kNoNode) made->last_ = model.base.node(last).op;
  std::vector<int> exits = exits_passed(model, variant);
  exits.push_back(-1);
  int from = 0;
  for (const int exit : exits) {
    const int to =
        exit < 0 ? static_cast<int>(model.blocks.size()) : model.exits[static_cast<size_t>(exit)].after;
    Stage stage{.exit = exit};
    LIMBER_ASSIGN(stage.graph, stage_graph(model, variant, from, to, exit));
    LIMBER_ASSIGN(stage.session,
                  stage_session(stage.graph, model.params, backends, options.batch, options.threads));
    made->stages_.push_back(std::move(stage));
    from = to;
  }
  return made;
}

double ExitRunner::confidence(const Tensor& output, size_t row) const {
  const auto values = row_of(output, row);
  if (last_ != OpKind::kSoftmax && last_ != OpKind::kLogSoftmax) return confidence_of(values);
  const double peak = *std::max_element(values.begin(), values.end());
  const double sure = last_ == OpKind::kSoftmax ? peak : std::exp(peak);
  return sure >= 0 ? sure : 0;  // not a number: not sure at all
}

Result<ExitRunner::Answer> ExitRunner::run(const Tensor& image, double confidence) {
  const Tensor* input = &image;
  Tensor features;
  for (size_t s = 0;; ++s) {
    const Stage& stage = stages_[s];
    LIMBER_TRY(feed(*input, stage.session->input(0)));
    LIMBER_TRY(stage.session->run());
    Answer answer{stage.answer(), s, 0};
    if (stage.exit < 0) {
      answer.confidence = this->confidence(answer.output, 0);
      return answer;
    }
    if (confidence > 0) {
      answer.confidence = this->confidence(answer.output, 0);
      if (answer.confidence >= confidence) return answer;
    }
    features = stage.session->output(0);
    input = &features;
  }
}

Result<std::vector<Tensor>> ExitRunner::run_all(const Tensor& images) {
  std::vector<Tensor> answers;
  Tensor features = images;
  for (const Stage& stage : stages_) {
    LIMBER_TRY(feed(features, stage.session->input(0)));
    LIMBER_TRY(stage.session->run());
    answers.push_back(stage.answer());
    features = stage.session->output(0);
  }
  return answers;
}

}  // namespace limber
