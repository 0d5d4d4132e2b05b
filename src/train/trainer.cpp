#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "train/select.h"

namespace limber {
namespace {

// By the clock: evaluations and checkpoints between the first update and the last take at most this share of
// the time; often enough to see how it goes and to lose little in a crash, and no more.
constexpr double kAsideShare = 0.1;
constexpr double kEndMargin = 1.1;  // times what the last evaluation and checkpoint should take
constexpr const char* kPaceNote = "pace";
constexpr double kDiskBytesPerS = 2e8;  // that a slow disk takes, synced; until a checkpoint was written

Status check_options(const TrainerOptions& options, const Dataset& data) {
  const StepOptions& step = options.training.step;
  const int64_t needed = step.batch * step.micro_batches, images = static_cast<int64_t>(data.size());
  if (options.epochs < 1) return invalid("{} epochs; at least 1 is needed", options.epochs);
  if (options.time.given() && options.patience > 0)
    return invalid("patience counts evaluations after epochs; a training with a time ends when that does");
  const std::string_view random = options.mixup > 0 ? "mixup" : random_change(options.augmentation);
  if (options.training.feature_bytes > 0 && !random.empty())
    return invalid("features cannot be kept: {} makes an image different in every epoch", random);
  if (images < needed) {
    return invalid(
        "the data has {} images, one update takes {} (batch {} times accumulate {}); use a batch of {}",
        images, needed, step.batch, step.micro_batches, std::max<int64_t>(1, images / step.micro_batches));
  }
  return {};
}

Status check_input(const TensorType& type, const TrainerOptions& options) {
  const Preprocess& a = options.input;
  const TensorType images{DType::kF32, Shape{options.training.step.batch, a.channels, a.height, a.width}};
  if (type == images) return {};
  return invalid("batches of {} do not fit the model's input {}; choose another size or batch",
                 images.to_string(), type.to_string());
}

EpochRecord record_of(const EpochReport& report) {
  EpochRecord record{.epoch = report.epoch, .step = report.step};
  record.loss = report.loss;
  record.accuracy = report.accuracy;
  record.images = report.images;
  if (const auto& validation = report.validation) {
    record.val_loss = validation->loss;
    record.val_accuracy = validation->top1;
    record.val_top5 = validation->top5;
    record.val_images = validation->images;
    record.val_seconds = validation->seconds;
    record.best = report.best;
  }
  record.rate = report.rate;
  record.seconds = report.seconds;
  record.images_per_s = report.images_per_second;
  record.skipped = static_cast<int64_t>(report.skipped);
  return record;
}

}  // namespace

Result<std::unique_ptr<Trainer>> Trainer::create(TrainerInputs inputs, const TrainerOptions& options) {
  LIMBER_TRY(check_options(options, *inputs.data));
  std::unique_ptr<Trainer> made(new Trainer(std::move(inputs), options));
  LIMBER_TRY(made->make_session());
  LIMBER_TRY(made->make_loaders());
  LIMBER_TRY(made->open_history());
  return made;
}

Status Trainer::make_session() {
  LIMBER_ASSIGN(classes_, count_classes(inputs_.graph));
  LIMBER_TRY(check_labels(*inputs_.data, classes_));
  if (inputs_.graph.inputs().size() != 1)
    return invalid("the model has {} inputs; images go into exactly one", inputs_.graph.inputs().size());
  options_.training.step.soft_targets = options_.mixup > 0;
  options_.training.samples = inputs_.data->size();
  options_.training.choose =
      [this, first = options_.training.choose](
          const Graph& prepared,
          const std::vector<std::string>& trainable) -> Result<std::vector<std::string>> {
    LIMBER_ASSIGN(auto allowed, select_parameters(trainable, options_.train, options_.freeze));
    return first ? first(prepared, allowed) : allowed;
  };
  LIMBER_ASSIGN(session_, TrainingSession::create(logits_of(inputs_.graph), inputs_.params, inputs_.backends,
                                                  options_.training));
  return check_input(session_->images().type(), options_);
}

Status Trainer::make_loaders() {
  LoaderOptions how;
  how.batch = options_.training.step.batch;
  how.seed = options_.seed;
  how.workers = options_.workers;
  how.threads = options_.training.threads;
  how.drop_last = true;
  how.augment = options_.training.feature_bytes == 0;
  how.input = options_.input;
  how.augmentation = options_.augmentation;
  how.mixup = options_.mixup;
  how.on_bad_image = options_.on_bad_image;
  LIMBER_ASSIGN(loader_, Loader::make(inputs_.data, how));
  const int64_t micro = options_.training.step.micro_batches;
  batches_ = loader_->batches() / micro * micro;
  options_.schedule.warm_up =
      std::llround(options_.warm_up_epochs * static_cast<double>(updates_per_epoch()));
  if (state_.batch > batches_)
    return invalid("cannot go on at batch {}: an epoch has {}; has the data changed?", state_.batch,
                   batches_);
  if (inputs_.validation == nullptr) return {};
  const EvaluationOptions evaluation{.batch = how.batch,
                                     .threads = options_.training.threads,
                                     .workers = options_.workers,
                                     .input = options_.input,
                                     .on_bad_image = options_.on_bad_image,
                                     .memory = session_->memory()};
  LIMBER_ASSIGN(evaluator_, Evaluator::create(inputs_.graph, inputs_.params, inputs_.backends,
                                              inputs_.validation, evaluation));
  return {};
}

Status Trainer::open_history() {
  if (inputs_.folder == nullptr) return {};
  LIMBER_ASSIGN(history_, RecordWriter::open(inputs_.folder->history_path()));
  RunHeader header{.step = state_.step, .options = texts(), .environment = inputs_.environment};
  return state_.step == 0 ? history_->add(StartRecord{std::move(header)})
                          : history_->add(ResumeRecord{std::move(header)});
}

Result<TrainingSummary> Trainer::run() {
  LIMBER_TRY(begin_time());
  if (state_.step > 0) {
    saved_step_ = state_.step;
    rate_ = rate_at(options_.schedule, state_.step - 1, total_updates());
  }
  for (TrainerHook* hook : inputs_.hooks) LIMBER_TRY(hook->on_begin(*session_, state_, length_));
  LIMBER_ASSIGN(const Ending ending, loop());
  return TrainingSummary{ending, state_, reports_, loader_->skipped()};
}

// --- time -----------------------------------------------------------------------------------------------

Status Trainer::begin_time() {
  length_ = {updates_per_epoch(), total_updates()};
  if (!pace_.by_clock()) {
    look_at_clock();
    return {};
  }
  if (const auto note = inputs_.notes.find(kPaceNote); note != inputs_.notes.end())
    LIMBER_TRY(pace_.restore(note->second));
  if (evaluator_ != nullptr) {
    LIMBER_ASSIGN(evaluation_s_, evaluator_->estimate_seconds());
  }
  double bytes = 0;
  for (const std::string& name : session_->trainable())  // with the momentum of each
    bytes += 2 * static_cast<double>(inputs_.params->type(name)->bytes());
  if (inputs_.folder != nullptr) checkpoint_s_ = bytes / kDiskBytesPerS;
  look_at_clock();
  over_ = state_.step > 0 && pace_.over();
  if (state_.step > 0 || !pace_.limited() || pace_.left() > 0) return {};
  return invalid(
      "a time of {:.1f} s is too little: {:.1f} s went into reading images and preparing the model, and the "
      "last evaluation and checkpoint need {:.1f} s; give more time",
      pace_.limit(), pace_.spent(), kEndMargin * (evaluation_s_ + checkpoint_s_));
}

// At the beginning, after an update, and whenever what the end takes is known better.
void Trainer::look_at_clock() {
  if (!pace_.by_clock()) {
    length_.done = static_cast<double>(state_.step) / static_cast<double>(total_updates());
    return;
  }
  pace_.set_reserve(kEndMargin * (evaluation_s_ + checkpoint_s_));
  if (pace_.can_settle())
    pace_.settle(total_updates() - state_.step, static_cast<double>(options_.epochs) * (evaluation_s_ + checkpoint_s_));
  if (!pace_.limited()) return;
  length_.total = pace_.expected_updates(state_.step);
  length_.done = std::max(length_.done, pace_.done());  // the end may turn out to need less than was kept
  length_.left_s = std::max(0.0, pace_.limit() - pace_.spent());
}

// By the clock: may there be an evaluation and a checkpoint before the end?
bool Trainer::affordable() const {
  return aside_s_ + evaluation_s_ + checkpoint_s_ <= kAsideShare * pace_.spent();
}

bool Trainer::finished() const {
  return pace_.by_clock() ? over_ && state_.batch == 0 : state_.epoch >= options_.epochs;
}

// --- the loop -------------------------------------------------------------------------------------------

Result<Ending> Trainer::loop() {
  while (!finished()) {
    if (out_of_patience()) return Ending::kPatience;
    bool stopped = false;
    LIMBER_TRY(run_epoch(stopped));
    if (!stopped) LIMBER_TRY(end_epoch(stopped));
    if (!stopped) continue;
    if (saved_step_ != state_.step) LIMBER_TRY(save(false));
    return Ending::kStopped;
  }
  return Ending::kFinished;
}

Status Trainer::run_epoch(bool& stopped) {
  LIMBER_TRY(loader_->start_epoch(static_cast<uint64_t>(state_.epoch), state_.batch));
  while (state_.batch < batches_ && !over_) {
    stopped = stop_asked();
    if (stopped) return {};
    const double start = inputs_.clock();
    LIMBER_TRY(update(start));
    state_.seconds += inputs_.clock() - start;
    const bool due = options_.checkpoint_every > 0 && state_.step % options_.checkpoint_every == 0;
    if (due && state_.batch < batches_) LIMBER_TRY(save(false));
  }
  return {};
}

Status Trainer::update(double start) {
  const int micro = options_.training.step.micro_batches;
  for (TrainerHook* hook : inputs_.hooks) LIMBER_TRY(hook->on_step_begin(*session_, state_));
  rate_ = pace_.by_clock() ? rate_when(options_.schedule, state_.step, length_.done)
                           : rate_at(options_.schedule, state_.step, total_updates());
  session_->set_rate(rate_);
  double loss = 0;
  for (int i = 0; i < micro; ++i) {
    const Phase phase = micro == 1       ? Phase::kUpdate
                        : i == 0         ? Phase::kStart
                        : i + 1 == micro ? Phase::kFinish
                                         : Phase::kAccumulate;
    LIMBER_ASSIGN(const float one, micro_batch(phase));
    loss += static_cast<double>(one) / micro;
  }
  if (!std::isfinite(loss))
    return diverged(std::isnan(loss) ? "the loss is not a number" : "the loss is infinite");
  state_.loss_sum += loss * micro;
  state_.batch += micro;
  ++state_.step;
  pace_.count_update(inputs_.clock() - start);
  look_at_clock();
  over_ = pace_.over();
  const bool last = pace_.by_clock() ? over_ : state_.step == total_updates();
  const StepReport report{state_, batches_, loss, rate_, last};
  for (TrainerHook* hook : inputs_.hooks) LIMBER_TRY(hook->on_step_end(*session_, report));
  return write_lines();
}

Status Trainer::write_lines() {
  for (TrainerHook* hook : inputs_.hooks) {
    for (const std::string& line : hook->take_lines()) {
      if (history_) LIMBER_TRY(history_->add_line(line));
    }
  }
  return {};
}

Result<float> Trainer::micro_batch(Phase phase) {
  LIMBER_ASSIGN(const Batch batch, loader_->next());
  LIMBER_TRY(fill(batch));
  LIMBER_ASSIGN(const float loss, session_->step(phase, batch.samples));
  LIMBER_TRY(count(batch));
  return loss;
}

Status Trainer::fill(const Batch& batch) {
  std::memcpy(session_->images().raw(), batch.images.raw(), batch.images.bytes());
  if (!batch.targets.valid()) {
    std::memcpy(session_->labels().raw(), batch.labels.raw(), batch.labels.bytes());
    return {};
  }
  // The data may have fewer classes than the model.
  const auto from = batch.targets.data<float>();
  Tensor targets = session_->targets();
  const auto to = targets.data<float>();
  const auto rows = static_cast<size_t>(batch.size);
  const size_t width = from.size() / rows, stride = to.size() / rows;
  std::fill(to.begin(), to.end(), 0.F);
  for (size_t i = 0; i < rows; ++i) std::copy_n(&from[i * width], width, &to[i * stride]);
  return {};
}

Status Trainer::count(const Batch& batch) {
  const Tensor output = session_->logits();
  const auto logits = output.data<float>();
  const auto classes = static_cast<size_t>(classes_);
  for (size_t i = 0; i < static_cast<size_t>(batch.size); ++i) {
    const auto row = logits.subspan(i * classes, classes);
    state_.correct += among_best(row, batch.labels.data<int64_t>()[i], 1) ? 1 : 0;
  }
  state_.images += batch.size;
  return {};
}

Status Trainer::end_epoch(bool& stopped) {
  EpochReport report{.epoch = state_.epoch + 1, .step = state_.step, .rate = rate_};
  report.loss = state_.loss_sum / static_cast<double>(std::max<int64_t>(1, state_.batch));
  report.accuracy =
      static_cast<double>(state_.correct) / static_cast<double>(std::max<int64_t>(1, state_.images));
  report.images = state_.images;
  report.seconds = state_.seconds;
  report.images_per_second = static_cast<double>(state_.images) / std::max(state_.seconds, 1e-9);
  report.skipped = loader_->skipped();
  const bool due = pace_.by_clock()
                       ? pace_.over() || affordable()
                       : report.epoch % options_.evaluate_every == 0 || report.epoch == options_.epochs;
  if (evaluator_ != nullptr && due) {
    LIMBER_ASSIGN(report.validation, evaluator_->run(inputs_.stop));
    stopped = !report.validation;
    if (stopped) return {};
    report.best = take_validation(*report.validation);
    evaluation_s_ = report.validation->seconds;
    aside_s_ += evaluation_s_;
  }
  state_ = {.step = state_.step,
            .epoch = state_.epoch + 1,
            .best_epoch = state_.best_epoch,
            .best_accuracy = state_.best_accuracy,
            .best_loss = state_.best_loss};
  // Before the checkpoint: lines after the last checkpoint are void when the training goes on.
  if (history_) LIMBER_TRY(history_->add(record_of(report)));
  if (due || !pace_.by_clock()) LIMBER_TRY(save(report.best));
  look_at_clock();
  reports_.push_back(report);
  for (TrainerHook* hook : inputs_.hooks) LIMBER_TRY(hook->on_epoch_end(report));
  return {};
}

bool Trainer::take_validation(const Evaluation& validation) {
  const bool better = state_.best_epoch < 0 || validation.top1 > state_.best_accuracy ||
                      (validation.top1 == state_.best_accuracy && validation.loss < state_.best_loss);
  if (!better) return false;
  state_.best_epoch = state_.epoch;
  state_.best_accuracy = validation.top1;
  state_.best_loss = std::isfinite(validation.loss) ? validation.loss : 0;
  return true;
}

bool Trainer::out_of_patience() const {
  if (options_.patience <= 0 || state_.best_epoch < 0 || state_.batch > 0) return false;
  return (state_.epoch - 1 - state_.best_epoch) / options_.evaluate_every >= options_.patience;
}

Status Trainer::save(bool best) {
  if (inputs_.folder == nullptr) return {};
  CheckpointInfo info{state_, options_.seed, texts(), inputs_.data->class_names(), options_.input, {}};
  for (const TrainerHook* hook : inputs_.hooks) hook->save(info.notes);
  if (pace_.by_clock()) info.notes[kPaceNote] = pace_.note();
  const double start = inputs_.clock();
  const Status status = inputs_.folder->save(inputs_.graph, *inputs_.params, info, best);
  if (is_divergence(status)) return diverged(status.message());
  if (!status.ok()) {
    return error(
        status.code(),
        "no checkpoint could be written at step {} ({}); earlier ones in {} are as they were. Make room "
        "there and resume",
        state_.step, status.message(), inputs_.folder->path());
  }
  saved_step_ = state_.step;
  checkpoint_s_ = inputs_.clock() - start;
  aside_s_ += checkpoint_s_;
  return {};
}

OptionTexts Trainer::texts() const {
  OptionTexts texts = inputs_.options;
  texts.merge(describe(options_));
  texts["images"] = fmt::format("{}", inputs_.data->size());
  return texts;
}

Status Trainer::diverged(std::string_view what) const {
  const std::string kept = saved_step_ < 0
                               ? "there is no earlier checkpoint"
                               : fmt::format("the checkpoint of step {} is as it was", saved_step_);
  return invalid(
      "step {}: {}. Training diverged; lower the learning rate (now {:g}), lengthen the warm-up or clip "
      "gradients to a norm of 1; {}",
      state_.step + 1, what, rate_, kept);
}

}  // namespace limber
