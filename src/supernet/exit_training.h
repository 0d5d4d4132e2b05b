// Teaching exits to classify what the blocks before them give.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "data/loader.h"
#include "train/training_session.h"
#include "variant/elastic_model.h"

namespace limber {

struct ExitTrainerOptions {
  int64_t batch = 64;
  int threads = 1;
  OptimizerOptions optimizer{.kind = OptimizerKind::kAdamW, .decay = 1e-4};
  // What exits should say: this share of it is what the model says, the rest the label. 1: labels are not
  // looked at.
  double distill = 0.5;
  // How much less an image counts for an exit the surer the exits before it are, as it will hardly get there;
  // 0: every image counts the same.
  double focus = 0;
  size_t samples = 0;  // of the data set; what the model says about each is kept, so that it runs once
};

// Trains the parameters of all exits that the model has; blocks stay as they are. Every batch runs through
// the blocks once and then through each exit. Use from one thread.
class ExitTrainer {
 public:
  // `model` must outlive it, and its exits stay as they are meanwhile.
  static Result<std::unique_ptr<ExitTrainer>> create(ElasticModel& model,
                                                     const std::vector<std::shared_ptr<Backend>>& backends,
                                                     const ExitTrainerOptions& options);
  // Every exit takes a step. Returns the mean of their losses before it. REQUIRES: a full batch
  Result<double> step(const Batch& batch, double rate);

 private:
  ExitTrainer(ElasticModel& model, std::vector<std::shared_ptr<Backend>> backends,
              const ExitTrainerOptions& options)
      : model_(model), backends_(std::move(backends)), options_(options) {}
  Status add_pupil(const Exit& exit);
  Result<std::unique_ptr<Session>> make_tap(bool with_answer);
  Result<Session*> run_blocks(const Batch& batch);
  void keep_answers(const Session& session, const Batch& batch);
  void fill_targets(const Batch& batch);

  ElasticModel& model_;
  const std::vector<std::shared_ptr<Backend>> backends_;
  const ExitTrainerOptions options_;
  int64_t classes_ = 0;
  std::shared_ptr<SharedMemory> memory_;  // of what runs, one at a time
  std::unique_ptr<Session> blocks_,
      whole_;  // up to the last exit; to the model's end, which is the last output
  std::vector<std::unique_ptr<TrainingSession>> pupils_;  // by exit
  std::vector<float> answers_;                            // by sample and class: probabilities
  std::vector<bool> known_;                               // by sample
  std::vector<float> targets_;                            // of the batch
};

struct ExitProgress {
  double seconds = 0, of_seconds = 0;
  int64_t images = 0;
  double loss = 0;  // mean over the exits, lately
};

struct ExitTeachingOptions {
  ExitTrainerOptions trainer;
  double seconds = 300;
  double rate = 3e-3;  // falls to 0 in the course of them
  uint64_t seed = 0;
  AugmentOptions input;
  OnBadImage on_bad_image = OnBadImage::kFail;
  int workers = 1;
  std::function<void(const ExitProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;
};

// For so many seconds, or until it is stopped. Returns how many are over.
Result<double> teach_exits(ElasticModel& model, const std::shared_ptr<const Dataset>& data,
                           const std::vector<std::shared_ptr<Backend>>& backends,
                           const ExitTeachingOptions& options);

}  // namespace limber
