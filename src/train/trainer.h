// The training loop: batches in, checkpoints and history out.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/loader.h"
#include "record/record_file.h"
#include "train/evaluate.h"
#include "train/manifest.h"
#include "train/pace.h"
#include "train/run_folder.h"
#include "train/training_session.h"

namespace limber {

struct TrainerOptions {
  TrainingOptions training;  // its batch is what one pass takes; `micro_batches` of them make one update
  ScheduleOptions schedule;
  double warm_up_epochs = 0;  // replaces schedule.warm_up
  int64_t epochs = 10;
  // Ends the training instead of `epochs`, and the learning rate reaches its end then. Epochs go on until it
  // does; images are evaluated and checkpoints written as often as a tenth of the time allows.
  TimeLimit time;
  uint64_t seed = 0;
  Preprocess input;
  AugmentOptions augmentation;
  double mixup = 0;
  OnBadImage on_bad_image = OnBadImage::kFail;
  int workers = kAutoWorkers;
  std::vector<std::string> train, freeze;  // patterns, see train/select.h
  int64_t evaluate_every = 1;              // epochs; the last is always evaluated
  int64_t patience = 0;          // evaluations without a better one before training ends; 0: no such end
  int64_t checkpoint_every = 0;  // updates; 0: only at the end of an epoch
};

// What training depends on, by the names of the command's options: two trainings of the same model and data
// with equal texts end with equal weights, bit for bit.
OptionTexts describe(const TrainerOptions& options);

struct StepReport {
  TrainingState state;  // after the step
  int64_t batches = 0;  // of an epoch
  double loss = 0, rate = 0;
  bool last = false;  // of the training
};

struct EpochReport {
  int64_t epoch = 0;              // from 1
  int64_t step = 0;               // updates done
  double loss = 0, accuracy = 0;  // on the training images as they were shown
  int64_t images = 0;             // that were shown
  std::optional<Evaluation> validation;
  bool best = false;
  double rate = 0;  // of the last update
  double seconds = 0, images_per_second = 0;
  size_t skipped = 0;
};

// How long a training is, in updates.
struct TrainingLength {
  int64_t epoch = 0, total = 0;  // by the clock, `total` is what is expected now
  double done = 0;               // share of it that is behind
  double left_s = -1;            // until the clock ends it; negative: it does not, or nobody knows yet
};

// Called by the training loop, from its thread. A failure ends the training.
class TrainerHook {
 public:
  virtual ~TrainerHook() = default;
  // Once, before the first step of this process. `length` stays where it is and is kept up to date.
  virtual Status on_begin(TrainingSession& /*session*/, const TrainingState& /*state*/,
                          const TrainingLength& /*length*/) {
    return {};
  }
  // Before the first micro-batch of an update; may change what is trained.
  virtual Status on_step_begin(TrainingSession& /*session*/, const TrainingState& /*state*/) { return {}; }
  virtual Status on_step_end(TrainingSession& /*session*/, const StepReport& /*report*/) { return {}; }
  virtual Status on_epoch_end(const EpochReport& /*report*/) { return {}; }
  // Adds what it needs to go on as if nothing had happened; it is in CheckpointInfo::notes when a training
  // goes on.
  virtual void save(OptionTexts& /*notes*/) const {}
  // Lines for the history since the last call, made by record_line() of records with a step.
  virtual std::vector<std::string> take_lines() { return {}; }
};

struct TrainerInputs {
  Graph graph;
  std::shared_ptr<Parameters> params;               // optimiser state included when a training goes on
  std::shared_ptr<const Dataset> data, validation;  // the latter may be null
  std::vector<std::shared_ptr<Backend>> backends;
  RunFolder* folder = nullptr;   // null: neither checkpoints nor history
  TrainingState state;           // where to go on
  OptionTexts notes;             // of the checkpoint it goes on from
  std::function<double()> clock = now_seconds;  // that goes when a test tells it to
  double began = clock();                       // when what time is counted for began
  OptionTexts options;           // what hooks were asked for; kept beside describe()
  OptionTexts environment;       // for the history
  std::vector<TrainerHook*> hooks;
  const std::atomic<bool>* stop = nullptr;  // true: end after the step under way, with a checkpoint
};

enum class Ending : uint8_t { kFinished, kPatience, kStopped };

struct TrainingSummary {
  Ending ending = Ending::kFinished;
  TrainingState state;
  std::vector<EpochReport> epochs;  // of this call
  size_t skipped = 0;
};

class Trainer {
 public:
  static Result<std::unique_ptr<Trainer>> create(TrainerInputs inputs, const TrainerOptions& options);

  // To the end, or to where it stops. On failure (a loss that is not finite, a full disk, an image that
  // cannot be read) earlier checkpoints are as they were.
  Result<TrainingSummary> run();

  TrainingSession& session() { return *session_; }
  int64_t updates_per_epoch() const { return batches_ / options_.training.step.micro_batches; }
  int64_t total_updates() const { return updates_per_epoch() * options_.epochs; }
  // What the clock says; a training by epochs has no limit.
  const Pace& pace() const { return pace_; }
  const std::vector<std::string>& skip_messages() const { return loader_->skip_messages(); }

 private:
  Trainer(TrainerInputs inputs, const TrainerOptions& options)
      : inputs_(std::move(inputs)),
        options_(options),
        state_(inputs_.state),
        pace_(options.time, inputs_.began, inputs_.clock) {}
  Status make_session();
  Status make_loaders();
  Status open_history();
  Status begin_time();
  void look_at_clock();
  bool affordable() const;
  bool finished() const;
  Result<Ending> loop();
  Status run_epoch(bool& stopped);
  Status update(double start);
  Result<float> micro_batch(Phase phase);
  Status fill(const Batch& batch);
  Status count(const Batch& batch);
  Status write_lines();
  Status end_epoch(bool& stopped);
  bool take_validation(const Evaluation& validation);
  Status save(bool best);
  OptionTexts texts() const;
  Status diverged(std::string_view what) const;
  bool stop_asked() const { return inputs_.stop != nullptr && inputs_.stop->load(); }
  bool out_of_patience() const;

  TrainerInputs inputs_;
  TrainerOptions options_;
  TrainingState state_;
  int64_t saved_step_ = -1;
  int64_t batches_ = 0, classes_ = 0;  // batches of an epoch that are used
  double rate_ = 0;
  Pace pace_;
  TrainingLength length_;
  bool over_ = false;  // the time is; stays so when the end then takes less than was kept for it
  double evaluation_s_ = 0, checkpoint_s_ = 0;  // of the last, or what one is expected to take
  double aside_s_ = 0;                          // that both took so far
  std::unique_ptr<TrainingSession> session_;
  std::unique_ptr<Loader> loader_;
  std::unique_ptr<Evaluator> evaluator_;
  std::optional<RecordWriter> history_;
  std::vector<EpochReport> reports_;
};

}  // namespace limber
