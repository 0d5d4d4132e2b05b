#include "supernet/exit_runner.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/clock.h"
#include "ops/op_def.h"
#include "passes/graph_copy.h"
#include "runtime/compile.h"
#include "train/evaluate.h"

namespace limber {
namespace {

std::span<const float> answer_row(const Tensor& output, size_t row) {
  const size_t width = output.data<float>().size() / static_cast<size_t>(output.shape().dim(0));
  return output.data<float>().subspan(row * width, width);
}

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

Status feed_stage(const Tensor& from, const Session& to) {
  Tensor input = to.input(0);
  bool fits = from.dtype() == input.dtype() && from.type().rank() == input.type().rank() &&
              from.bytes() <= input.bytes();
  for (int axis = 1; fits && axis < input.type().rank(); ++axis)
    fits = from.shape().dim(axis) == input.shape().dim(axis);
  if (!fits) return invalid("images {} do not fit {}", from.type().to_string(), input.type().to_string());
  std::memcpy(input.raw(), from.raw(), from.bytes());
  return {};
}

// One image of a batch.
Result<Tensor> image_of(const Tensor& batch, size_t row) {
  Shape shape = batch.shape();
  shape[0] = Dim(1);
  LIMBER_ASSIGN(Tensor image, Tensor::allocate({batch.dtype(), shape}));
  std::memcpy(image.raw(), static_cast<const std::byte*>(batch.raw()) + row * image.bytes(), image.bytes());
  return image;
}

template <typename Run>
Result<double> least_seconds(const Run& run) {
  constexpr int kTries = 3;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) {
    const double start = now_seconds();
    LIMBER_TRY(run());
    least = std::min(least, now_seconds() - start);
  }
  return least;
}

Status stopped_after(size_t batch, size_t batches) {
  return error(Code::kResourceExhausted, "stopped after {} of {} batches", batch, batches);
}

}  // namespace

Result<std::unique_ptr<ExitRunner>> ExitRunner::create(const ElasticModel& model, const Variant& variant,
                                                       const std::vector<std::shared_ptr<Backend>>& backends,
                                                       const ExitRunnerOptions& options) {
  if (options.batch < 1) return invalid("batches of {} images, expected 1 or more", options.batch);
  LIMBER_TRY(count_classes(model.base).status());
  LIMBER_TRY(check_variant(model, variant));
  if (variant.exit >= 0)
    return invalid("variant '{}' ends with exit {}, expected one that passes exits", print(variant),
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
  const auto values = answer_row(output, row);
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
    LIMBER_TRY(feed_stage(*input, *stage.session));
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
    LIMBER_TRY(feed_stage(features, *stage.session));
    LIMBER_TRY(stage.session->run());
    answers.push_back(stage.answer());
    features = stage.session->output(0);
  }
  return answers;
}

Result<ExitOutcomes> judge_exits(ExitRunner& runner, const EvaluationSet& set,
                                 const std::atomic<bool>* stop) {
  if (set.labels.size() != set.images.size())
    return invalid("labels for {} batches of images, there are {}", set.labels.size(), set.images.size());
  ExitOutcomes outcomes;
  outcomes.endings.resize(runner.endings());
  for (size_t b = 0; b < set.images.size(); ++b) {
    if (stop != nullptr && stop->load()) return stopped_after(b, set.images.size());
    LIMBER_ASSIGN(const std::vector<Tensor> answers, runner.run_all(set.images[b]));
    for (size_t e = 0; e < answers.size(); ++e) {
      ExitOutcomes::Ending& ending = outcomes.endings[e];
      for (size_t i = 0; i < set.labels[b].size(); ++i) {
        const auto row = answer_row(answers[e], i);
        const int64_t label = set.labels[b][i];
        if (label < 0 || label >= static_cast<int64_t>(row.size()))
          return invalid("batch {}: class {} of an image, the model has {} classes", b, label, row.size());
        ending.correct.push_back(among_best(row, label, 1));
        ending.confidence.push_back(runner.confidence(answers[e], i));
      }
    }
  }
  LIMBER_TRY(outcomes.check());
  return outcomes;
}

Status time_exits(const ElasticModel& model, const Variant& variant, const ExitRunner& runner,
                  const std::vector<std::shared_ptr<Backend>>& backends, const MeasureOptions& options,
                  ExitOutcomes& outcomes) {
  double seconds = 0;
  for (size_t e = 0; e < runner.endings(); ++e) {
    LIMBER_ASSIGN(const double stage, measure_latency(runner.graph(e), model.params, backends, options));
    seconds += stage;
    outcomes.endings[e].seconds = seconds;
    Variant forced = variant;
    forced.exit = runner.exit(e);
    forced.confidence = 0;
    LIMBER_ASSIGN(const Graph graph, materialize(model, forced));
    LIMBER_ASSIGN(outcomes.endings[e].forced_seconds,
                  measure_latency(graph, model.params, backends, options));
  }
  return {};
}

Result<RealLatency> measure_real_latency(const ElasticModel& model, const Variant& variant,
                                         const EvaluationSet& set, int64_t images,
                                         const std::vector<std::shared_ptr<Backend>>& backends, int threads) {
  LIMBER_ASSIGN(const auto runner, ExitRunner::create(model, variant, backends, {.threads = threads}));
  LIMBER_ASSIGN(const auto full, stage_session(model.base, model.params, backends, 1, threads));
  RealLatency sum;
  for (const Tensor& batch : set.images) {
    for (size_t i = 0; i < static_cast<size_t>(batch.shape().dim(0)) && sum.images < images; ++i) {
      LIMBER_ASSIGN(const Tensor image, image_of(batch, i));
      LIMBER_ASSIGN(const double with_exits,
                    least_seconds([&] { return runner->run(image, variant.confidence).status(); }));
      LIMBER_ASSIGN(const double without, least_seconds([&]() -> Status {
                      LIMBER_TRY(feed_stage(image, *full));
                      return full->run();
                    }));
      sum.seconds += with_exits;
      sum.full_seconds += without;
      ++sum.images;
    }
  }
  if (sum.images == 0) return invalid("no images to measure with");
  sum.seconds /= static_cast<double>(sum.images);
  sum.full_seconds /= static_cast<double>(sum.images);
  return sum;
}

}  // namespace limber
