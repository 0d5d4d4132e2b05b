#include "supernet/exits/exit_judge.h"

#include <cstring>

#include "ops/op_def.h"
#include "passes/classifier.h"
#include "runtime/compile.h"
#include "variant/rows.h"

namespace limber {
namespace {

// One image of a batch.
Result<Tensor> image_of(const Tensor& batch, size_t row) {
  Shape shape = batch.shape();
  shape[0] = Dim(1);
  LIMBER_ASSIGN(Tensor image, Tensor::allocate({batch.dtype(), shape}));
  std::memcpy(image.raw(), static_cast<const std::byte*>(batch.raw()) + row * image.bytes(), image.bytes());
  return image;
}

Result<std::unique_ptr<Session>> one_image_session(const ElasticModel& model,
                                                   const std::vector<std::shared_ptr<Backend>>& backends,
                                                   int threads) {
  const CompileSettings how = batch_settings(model.base, 1, threads);
  LIMBER_ASSIGN(auto plan, compile(model.base, model.params, backends, how));
  return Session::create(std::move(plan));
}

Status stopped_after(size_t batch, size_t batches) {
  return error(Code::kResourceExhausted, "stopped after {} of {} batches", batch, batches);
}

}  // namespace

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
        const auto row = row_of(answers[e], i);
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
  LIMBER_ASSIGN(const auto full, one_image_session(model, backends, threads));
  RealLatency sum;
  for (const Tensor& batch : set.images) {
    for (size_t i = 0; i < static_cast<size_t>(batch.shape().dim(0)) && sum.images < images; ++i) {
      LIMBER_ASSIGN(const Tensor image, image_of(batch, i));
      TurnTimer timer({.seconds = 0, .min_rounds = 1, .warm_up = 0});  // one round: there are many images
      timer.add([&](std::vector<double>&) { return runner->run(image, variant.confidence).status(); });
      timer.add([&](std::vector<double>&) -> Status {
        LIMBER_TRY(feed(image, full->input(0)));
        return full->run();
      });
      LIMBER_TRY(timer.run());
      sum.seconds += timer.seconds(0);
      sum.full_seconds += timer.seconds(1);
      ++sum.images;
    }
  }
  if (sum.images == 0) return invalid("no images to measure with");
  sum.seconds /= static_cast<double>(sum.images);
  sum.full_seconds /= static_cast<double>(sum.images);
  return sum;
}

}  // namespace limber
