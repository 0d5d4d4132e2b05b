#include "supernet/exits/exit_training.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/clock.h"
#include "ops/op_def.h"
#include "passes/classifier.h"
#include "runtime/compile.h"
#include "supernet/exits/exit_calibration.h"
#include "supernet/exits/exit_layer.h"
#include "train/evaluate.h"

namespace limber {
namespace {

constexpr double kLately = 0.05;  // weight of a batch in the loss that is shown
constexpr double kWarmUp = 0.02;  // share of the time in which the rate rises

void put(const Tensor& from, Tensor to) {
  LIMBER_ASSERT(from.bytes() == to.bytes());
  std::memcpy(to.raw(), from.raw(), from.bytes());
}

class FrozenTeacher : public ExitTeacher {
 public:
  FrozenTeacher(ElasticModel& model, std::shared_ptr<ExitTargets> targets,
                const std::vector<std::shared_ptr<Backend>>& backends, const ExitTrainerOptions& options)
      : model_(model),
        backends_(backends),
        options_(options),
        targets_(std::move(targets)),
        random_(options.seed) {}

  Status prepare() {
    LIMBER_ASSIGN(memory_, WorkArena::reserve(CompileSettings{}.max_bytes));
    LIMBER_TRY(make_blocks());
    for (const Exit& exit : model_.exits) LIMBER_TRY(add_pupil(exit).in(fmt::format("exit '{}'", exit.name)));
    return {};
  }

  Result<double> step(const Batch& batch, double rate) override {
    LIMBER_ASSIGN(const auto targets, targets_->of(batch));
    wanted_.assign(targets.begin(), targets.end());
    put(batch.images, blocks_->input(0));
    LIMBER_TRY(blocks_->run());
    double sum = 0;
    for (size_t e = 0; e < pupils_.size(); ++e) {
      TrainingSession& pupil = *pupils_[e];
      put(blocks_->output(e), pupil.images());
      std::copy(wanted_.begin(), wanted_.end(), pupil.targets().data<float>().begin());
      if (options_.dropout > 0)
        draw_dropout(random_, options_.dropout, pupil.named_input(kDropoutInput).data<float>());
      pupil.set_rate(rate);
      LIMBER_ASSIGN(const float loss, pupil.step());
      sum += static_cast<double>(loss);
      if (options_.focus > 0) weigh(pupil.logits());
    }
    return sum / static_cast<double>(pupils_.size());
  }

 private:
  // The model with what exits read as outputs, in their order.
  Status make_blocks() {
    Graph graph = model_.base;
    graph.mutable_outputs().clear();
    for (const Exit& exit : model_.exits) {
      const std::string& name = exit.after > 0 ? model_.blocks[static_cast<size_t>(exit.after) - 1].name
                                               : model_.base.value(model_.base.inputs()[0]).name;
      const auto value = graph.find(name);
      if (!value)
        return invalid("the model has no value '{}', where exit '{}' should start", name, exit.name);
      graph.add_output(*value, exit.name);
    }
    graph.compact();
    const CompileSettings how = batch_settings(graph, options_.batch, options_.threads);
    LIMBER_ASSIGN(auto plan, compile(graph, model_.params, backends_, how));
    LIMBER_ASSIGN(blocks_, Session::create(std::move(plan), memory_));
    return {};
  }

  Status add_pupil(const Exit& exit) {
    TrainingOptions how{.threads = options_.threads, .memory = memory_};
    how.step = {.batch = options_.batch,
                .loss = {.kind = LossKind::kCrossEntropy},
                .soft_targets = true,
                .optimizer = options_.optimizer};
    Graph graph = logits_of(exit.graph);
    if (options_.dropout > 0) {
      LIMBER_ASSIGN(graph, with_dropout(graph));
    }
    LIMBER_ASSIGN(auto training, TrainingSession::create(graph, model_.params, backends_, how));
    pupils_.push_back(std::move(training));
    return {};
  }

  // A row counts as much as it sums up to.
  void weigh(const Tensor& logits) {
    const auto classes = static_cast<size_t>(targets_->classes());
    for (size_t i = 0; i < wanted_.size(); i += classes) {
      const double sure = confidence_of(logits.data<float>().subspan(i, classes));
      for (size_t c = i; c < i + classes; ++c) wanted_[c] *= static_cast<float>(1 - options_.focus * sure);
    }
  }

  ElasticModel& model_;
  const std::vector<std::shared_ptr<Backend>> backends_;
  const ExitTrainerOptions options_;
  const std::shared_ptr<ExitTargets> targets_;
  std::shared_ptr<WorkArena> memory_;  // of what runs, one at a time; outputs lie elsewhere
  std::unique_ptr<Session> blocks_;
  std::vector<std::unique_ptr<TrainingSession>> pupils_;  // by exit
  std::vector<float> wanted_;                             // of the batch, for the next exit
  Random random_;
};

LoaderOptions exit_loader(const ExitTeachingOptions& options) {
  LoaderOptions how;
  how.batch = options.trainer.batch;
  how.seed = options.seed;
  how.workers = options.workers;
  how.threads = options.trainer.threads;
  how.drop_last = true;
  how.input = options.input;
  how.augmentation = options.augmentation;
  how.on_bad_image = options.on_bad_image;
  return how;
}

double rate_after(double rate, double done) {
  // From a tenth: an exit begins with random weights, whose first gradients would upset tuned blocks.
  if (done < kWarmUp) return rate * (0.1 + 0.9 * done / kWarmUp);
  return rate * 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, done)));
}

}  // namespace

Result<std::unique_ptr<ExitTeacher>> make_exit_teacher(ElasticModel& model,
                                                       std::shared_ptr<ExitTargets> targets,
                                                       const std::vector<std::shared_ptr<Backend>>& backends,
                                                       const ExitTrainerOptions& options) {
  if (model.exits.empty()) return invalid("the model has no exits to train");
  auto made = std::make_unique<FrozenTeacher>(model, std::move(targets), backends, options);
  LIMBER_TRY(made->prepare());
  return std::unique_ptr<ExitTeacher>(std::move(made));
}

Result<double> teach_exits(ExitTeacher& teacher, const std::shared_ptr<const Dataset>& data,
                           const ExitTeachingOptions& options) {
  LIMBER_ASSIGN(const auto loader, Loader::make(data, exit_loader(options)));
  if (loader->batches() < 1)
    return invalid("{} images are less than a batch of {}; give more, or a smaller batch", data->size(),
                   options.trainer.batch);
  const double start = now_seconds();
  ExitProgress state{.of_seconds = options.seconds};
  const auto over = [&] {
    state.seconds = now_seconds() - start;
    return state.seconds >= options.seconds || (options.stop != nullptr && options.stop->load());
  };
  for (uint64_t epoch = 0; !over(); ++epoch) {
    LIMBER_TRY(loader->start_epoch(epoch));
    while (!over()) {
      LIMBER_ASSIGN(const Batch batch, loader->next());
      if (batch.size == 0) break;
      const double done = options.from + (options.until - options.from) * state.seconds / options.seconds;
      const double rate = rate_after(options.rate, done);
      LIMBER_ASSIGN(const double loss, teacher.step(batch, rate));
      state.loss = state.images == 0 ? loss : (1 - kLately) * state.loss + kLately * loss;
      state.images += batch.size;
      if (options.progress) options.progress(state);
    }
  }
  return std::min(state.seconds, options.seconds);
}

}  // namespace limber
