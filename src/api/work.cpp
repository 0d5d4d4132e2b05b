#include "api/work.h"

#include "api/convert.h"
#include "jobs/elastify_job.h"
#include "jobs/eval_job.h"
#include "jobs/search_job.h"
#include "jobs/train_job.h"

namespace limber::bridge {
namespace {

// Lets the caller's functions watch a job.
class Watcher : public JobObserver {
 public:
  explicit Watcher(const Control& control) : control_(control) {}

  void on_note(NoteKind kind, const std::string& text) override {
    static_assert(static_cast<int>(NoteLevel::kWarning) == static_cast<int>(NoteKind::kWarning));
    if (control_.on_note) control_.on_note(static_cast<NoteLevel>(kind), text);
  }
  void on_progress(const JobProgress& p) override {
    if (control_.on_progress) control_.on_progress({p.stage, p.share, p.text});
  }

  JobControl job() { return {this, control_.stop}; }

 private:
  const Control& control_;
};

// --- training -------------------------------------------------------------------------------------------

OptimizerKind to_kind(TrainOptimizer optimizer) {
  switch (optimizer) {
    case TrainOptimizer::kSgd:
      return OptimizerKind::kSgd;
    case TrainOptimizer::kAdam:
      return OptimizerKind::kAdam;
    case TrainOptimizer::kAdamW:
      return OptimizerKind::kAdamW;
  }
  LIMBER_UNREACHABLE();
}

TrainJobOptions to_options(const TrainSettings& s) {
  TrainJobOptions o;
  o.model = s.model;
  o.data = s.data;
  o.output = s.output;
  o.resume = s.resume;
  o.validation = s.validation;
  o.validate = s.validate;
  o.batch = s.batch;
  o.trainer.epochs = s.epochs;
  o.trainer.training.step.optimizer.kind = to_kind(s.optimizer);
  o.rate = s.rate;
  o.from_scratch = s.from_scratch;
  o.time = s.seconds;
  o.speedup = s.speedup;
  o.threads = s.threads;
  o.seed = s.seed;
  return o;
}

TrainedEpoch to_epoch(const EpochReport& report) {
  TrainedEpoch epoch{.epoch = report.epoch,
                     .loss = report.loss,
                     .accuracy = report.accuracy,
                     .validation_accuracy = std::nullopt,
                     .seconds = report.seconds};
  if (report.validation) epoch.validation_accuracy = report.validation->top1;
  return epoch;
}

class EpochTeller : public TrainerHook {
 public:
  explicit EpochTeller(const TrainControl& control) : control_(control) {}
  Status on_epoch_end(const EpochReport& report) override {
    if (control_.on_epoch) control_.on_epoch(to_epoch(report));
    return {};
  }

 private:
  const TrainControl& control_;
};

TrainReport to_report(const TrainResult& result) {
  const TrainingState& state = result.summary.state;
  TrainReport report;
  report.stopped = result.summary.ending == Ending::kStopped;
  report.steps = state.step;
  report.seconds = result.seconds;
  for (const EpochReport& epoch : result.summary.epochs) report.epochs.push_back(to_epoch(epoch));
  if (state.best_epoch >= 0) {
    report.best_accuracy = state.best_accuracy;
    report.best_epoch = state.best_epoch + 1;
  }
  report.images = result.images;
  report.validation_images = result.validation_images;
  return report;
}

// --- evaluation -----------------------------------------------------------------------------------------

EvaluateReport to_report(const EvalResult& result) {
  EvaluateReport report;
  report.images = result.evaluation.images;
  report.accuracy = result.evaluation.top1;
  report.top5 = result.evaluation.top5;
  report.loss = result.evaluation.loss;
  report.calibration_error = result.record.calibration_error();
  const auto counts = result.record.by_class();
  for (size_t i = 0; i < counts.size(); ++i)
    report.classes.push_back(
        {result.record.classes[i], counts[i].images, counts[i].correct, counts[i].predicted});
  return report;
}

}  // namespace

Expected<TrainReport> train(const TrainSettings& settings, const TrainControl& control) {
  Watcher watcher(control);
  EpochTeller epochs(control);
  const auto result = run_train(to_options(settings), watcher.job(), {.hooks = {&epochs}});
  if (!result.ok()) return to_error(result.status());
  return to_report(*result);
}

Expected<EvaluateReport> evaluate(const EvaluateSettings& settings, const Control& control) {
  EvalJobOptions options;
  options.model = settings.model;
  options.data = settings.data;
  options.split = settings.training_part ? Split::kTrain : Split::kTest;
  options.batch = settings.batch;
  options.threads = settings.threads;
  Watcher watcher(control);
  const auto result = run_eval(options, watcher.job());
  if (!result.ok()) return to_error(result.status());
  if (!result->has_value()) return EvaluateReport{.stopped = true};
  return to_report(**result);
}

Expected<ElastifyReport> elastify(const ElastifySettings& settings, const Control& control) {
  ElastifyJobOptions options;
  options.model = settings.model;
  options.data = settings.data;
  options.output = settings.output;
  options.resume = settings.resume;
  options.budget = settings.budget_s;
  if (!settings.shares.empty()) options.shares = settings.shares;
  options.threads = settings.threads;
  options.seed = settings.seed;
  Watcher watcher(control);
  const auto outcome = run_elastify(options, watcher.job());
  if (!outcome.ok()) return to_error(outcome.status());
  return ElastifyReport{.stopped = outcome->stopped,
                        .blocks = static_cast<int64_t>(outcome->folder.model.blocks.size()),
                        .alternatives = static_cast<int64_t>(outcome->alternatives),
                        .size_ratio = outcome->size_ratio,
                        .seconds = outcome->seconds};
}

Expected<SearchReport> search(const SearchSettings& settings, const Control& control) {
  SearchJobOptions options;
  options.model = settings.folder;
  options.source.data = settings.data;
  options.source.images = settings.images;
  options.latency = settings.latency_s;
  options.latency_share = settings.latency_share;
  options.max_memory = settings.max_memory;
  options.evaluations = settings.evaluations;
  options.threads = settings.threads;
  options.seed = settings.seed;
  Watcher watcher(control);
  const auto outcome = run_search(options, watcher.job());
  if (!outcome.ok()) return to_error(outcome.status());
  SearchReport report{.stopped = outcome->stopped, .limit_s = outcome->limit_s, .within = outcome->within};
  if (outcome->stopped) return report;
  report.best = {.variant = print(outcome->model, outcome->best.variant),
                 .latency_s = outcome->best_s,
                 .measured = true,
                 .accuracy = outcome->best.accuracy,
                 .images = outcome->images.count,
                 .memory_bytes = outcome->best_memory};
  report.original = {.variant = print(outcome->model, outcome->original),
                     .latency_s = outcome->original_s,
                     .measured = true,
                     .accuracy = outcome->original_accuracy,
                     .images = outcome->images.count};
  return report;
}

}  // namespace limber::bridge
