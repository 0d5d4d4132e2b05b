#include "supernet/exit_training.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/clock.h"
#include "ops/op_def.h"
#include "runtime/compile.h"
#include "supernet/exit_calibration.h"
#include "train/evaluate.h"

namespace limber {
namespace {

constexpr size_t kMostAnswers = size_t{1} << 28;  // bytes of answers that are kept
constexpr double kLately = 0.05;                  // weight of a batch in the loss that is shown
constexpr double kWarmUp = 0.02;                  // share of the time in which the rate rises

void put(const Tensor& from, Tensor to) {
  LIMBER_ASSERT(from.bytes() == to.bytes());
  std::memcpy(to.raw(), from.raw(), from.bytes());
}

void softmax_into(std::span<const float> logits, float* to) {
  const float peak = *std::max_element(logits.begin(), logits.end());
  float sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) sum += to[i] = std::exp(logits[i] - peak);
  for (size_t i = 0; i < logits.size(); ++i) to[i] /= sum;
}

LoaderOptions exit_loader(const ExitTeachingOptions& options) {
  LoaderOptions how;
  how.batch = options.trainer.batch;
  how.seed = options.seed;
  how.workers = options.workers;
  how.drop_last = true;
  how.augmentation = options.input;
  how.on_bad_image = options.on_bad_image;
  return how;
}

double rate_after(double rate, double done) {
  if (done < kWarmUp) return rate * (0.1 + 0.9 * done / kWarmUp);
  return rate * 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, done)));
}

}  // namespace

Result<std::unique_ptr<ExitTrainer>> ExitTrainer::create(
    ElasticModel& model, const std::vector<std::shared_ptr<Backend>>& backends,
    const ExitTrainerOptions& options) {
  if (model.exits.empty()) return invalid("the model has no exits to train");
  std::unique_ptr<ExitTrainer> made(new ExitTrainer(model, backends, options));
  LIMBER_ASSIGN(made->classes_, count_classes(model.base));
  LIMBER_ASSIGN(made->memory_, SharedMemory::reserve(CompileOptions{}.max_bytes));
  LIMBER_ASSIGN(made->blocks_, made->make_tap(false));
  LIMBER_ASSIGN(made->whole_, made->make_tap(true));
  for (const Exit& exit : model.exits)
    LIMBER_TRY(made->add_pupil(exit).in(fmt::format("exit '{}'", exit.name)));
  const auto classes = static_cast<size_t>(made->classes_);
  const bool keeps = options.samples * classes * sizeof(float) <= kMostAnswers;
  made->known_.resize(keeps ? options.samples : 0, false);
  made->answers_.resize(made->known_.size() * classes);
  made->targets_.resize(static_cast<size_t>(options.batch) * classes);
  return made;
}

// The model with what exits read as outputs, in their order.
Result<std::unique_ptr<Session>> ExitTrainer::make_tap(bool with_answer) {
  Graph graph = with_answer ? logits_of(model_.base) : model_.base;
  const ValueId answer = graph.outputs()[0].value;
  graph.mutable_outputs().clear();
  for (const Exit& exit : model_.exits) {
    const std::string& name = exit.after > 0 ? model_.blocks[static_cast<size_t>(exit.after) - 1].name
                                             : model_.base.value(model_.base.inputs()[0]).name;
    const auto value = graph.find(name);
    if (!value) return invalid("the model has no value '{}', where exit '{}' should start", name, exit.name);
    graph.add_output(*value, exit.name);
  }
  if (with_answer) graph.add_output(answer, "the model's answer");
  graph.compact();
  CompileOptions how{.threads = options_.threads};
  for (const std::string& name : symbols(graph)) how.symbols[name] = options_.batch;
  LIMBER_ASSIGN(auto plan, compile(graph, model_.params, backends_, how));
  return Session::create(std::move(plan), memory_);
}

Status ExitTrainer::add_pupil(const Exit& exit) {
  TrainingOptions how{.threads = options_.threads, .memory = memory_};
  how.step = {.batch = options_.batch,
              .loss = {.kind = LossKind::kCrossEntropy},
              .soft_targets = true,
              .optimizer = options_.optimizer};
  LIMBER_ASSIGN(auto training, TrainingSession::create(logits_of(exit.graph), model_.params, backends_, how));
  pupils_.push_back(std::move(training));
  return {};
}

// The model's end is computed only when somebody has to know its answers.
Result<Session*> ExitTrainer::run_blocks(const Batch& batch) {
  const bool asks =
      options_.distill > 0 && !std::all_of(batch.samples.begin(), batch.samples.end(),
                                           [&](uint32_t s) { return s < known_.size() && known_[s]; });
  Session* const session = asks ? whole_.get() : blocks_.get();
  put(batch.images, session->input(0));
  LIMBER_TRY(session->run());
  if (asks) keep_answers(*session, batch);
  return session;
}

// Into the batch's targets too, which is all there is when too many would have to be kept.
void ExitTrainer::keep_answers(const Session& session, const Batch& batch) {
  const auto classes = static_cast<size_t>(classes_);
  const auto logits = session.output(model_.exits.size()).data<float>();
  for (size_t i = 0; i < batch.samples.size(); ++i) {
    softmax_into(logits.subspan(i * classes, classes), &targets_[i * classes]);
    const uint32_t sample = batch.samples[i];
    if (sample >= known_.size()) continue;
    known_[sample] = true;
    std::copy_n(&targets_[i * classes], classes, &answers_[sample * classes]);
  }
}

void ExitTrainer::fill_targets(const Batch& batch) {
  const auto classes = static_cast<size_t>(classes_);
  const auto distill = static_cast<float>(options_.distill);
  for (size_t i = 0; i < batch.samples.size(); ++i) {
    float* const row = &targets_[i * classes];
    const uint32_t sample = batch.samples[i];
    if (distill > 0 && sample < known_.size()) std::copy_n(&answers_[sample * classes], classes, row);
    for (size_t c = 0; c < classes; ++c) row[c] *= distill;
    row[batch.labels.data<int64_t>()[i]] += 1 - distill;
  }
}

Result<double> ExitTrainer::step(const Batch& batch, double rate) {
  LIMBER_ASSIGN(const Session* const blocks, run_blocks(batch));
  fill_targets(batch);
  const auto classes = static_cast<size_t>(classes_);
  // The arena is about to be used by others, outputs are not part of it.
  double sum = 0;
  for (size_t e = 0; e < pupils_.size(); ++e) {
    TrainingSession& pupil = *pupils_[e];
    put(blocks->output(e), pupil.images());
    std::copy(targets_.begin(), targets_.end(), pupil.targets().data<float>().begin());
    pupil.set_rate(rate);
    LIMBER_ASSIGN(const float loss, pupil.step());
    sum += static_cast<double>(loss);
    if (options_.focus <= 0 || e + 1 == pupils_.size()) continue;
    const auto logits = pupil.logits().data<float>();
    for (size_t i = 0; i < batch.samples.size(); ++i) {
      const double sure = confidence_of(logits.subspan(i * classes, classes));
      for (size_t c = 0; c < classes; ++c)
        targets_[i * classes + c] *= static_cast<float>(1 - options_.focus * sure);
    }
  }
  return sum / static_cast<double>(pupils_.size());
}

Result<double> teach_exits(ElasticModel& model, const std::shared_ptr<const Dataset>& data,
                           const std::vector<std::shared_ptr<Backend>>& backends,
                           const ExitTeachingOptions& options) {
  ExitTrainerOptions how = options.trainer;
  how.samples = data->size();
  LIMBER_ASSIGN(const auto trainer, ExitTrainer::create(model, backends, how));
  LIMBER_ASSIGN(const auto loader, Loader::make(data, exit_loader(options)));
  if (loader->batches() < 1) return invalid("{} images are less than a batch of {}", data->size(), how.batch);
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
      const double rate = rate_after(options.rate, state.seconds / options.seconds);
      LIMBER_ASSIGN(const double loss, trainer->step(batch, rate));
      state.loss = state.images == 0 ? loss : (1 - kLately) * state.loss + kLately * loss;
      state.images += batch.size;
      if (options.progress) options.progress(state);
    }
  }
  return std::min(state.seconds, options.seconds);
}

}  // namespace limber
