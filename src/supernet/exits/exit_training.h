// Teaching exits to classify what the blocks before them give.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "data/loader.h"
#include "supernet/exits/exit_targets.h"
#include "train/training_session.h"
#include "variant/elastic_model.h"

namespace limber {

struct ExitTrainerOptions {
  int64_t batch = 64;
  int threads = 1;
  OptimizerOptions optimizer{.kind = OptimizerKind::kAdamW, .decay = 1e-4};
  // How much less an image counts for an exit the surer the exits before it are, as it will hardly get there;
  // 0: every image counts the same.
  double focus = 0;
  // Of the features that an exit's linear layer reads, so many are left out of each image, at random.
  double dropout = 0;
  uint64_t seed = 0;  // of dropout
};

class ExitTeacher {
 public:
  virtual ~ExitTeacher() = default;
  // Every exit takes a step. Returns the mean of the losses before it. REQUIRES: a full batch
  virtual Result<double> step(const Batch& batch, double rate) = 0;
};

// Trains the parameters of all exits that the model has; blocks stay as they are. Every batch runs through
// the blocks once and then through each exit. `model` must outlive it, and its exits stay as they are
// meanwhile. Use from one thread.
Result<std::unique_ptr<ExitTeacher>> make_exit_teacher(ElasticModel& model,
                                                       std::shared_ptr<ExitTargets> targets,
                                                       const std::vector<std::shared_ptr<Backend>>& backends,
                                                       const ExitTrainerOptions& options);

struct ExitProgress {
  double seconds = 0, of_seconds = 0;
  int64_t images = 0;
  double loss = 0;  // mean over the exits, lately
};

struct ExitTeachingOptions {
  ExitTrainerOptions trainer;
  double seconds = 300;
  double rate = 3e-3;  // falls to 0 in the course of them
  // Of a teaching in several parts this is the part between these shares of it, with its part of the rates.
  double from = 0, until = 1;
  uint64_t seed = 0;
  Preprocess input;
  AugmentOptions augmentation;
  OnBadImage on_bad_image = OnBadImage::kFail;
  int workers = kAutoWorkers;
  std::function<void(const ExitProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;
};

// For so many seconds, or until it is stopped. Returns how many are over.
Result<double> teach_exits(ExitTeacher& teacher, const std::shared_ptr<const Dataset>& data,
                           const ExitTeachingOptions& options);

}  // namespace limber
