// What exits should say about a batch.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "data/loader.h"
#include "runtime/session.h"
#include "variant/elastic_model.h"

namespace limber {

// A mixture of labels and of what the model says. What it says about an image is kept, as far as memory
// allows, so that it runs once for each: of an image that changes from epoch to epoch the first version
// counts.
class ExitTargets {
 public:
  struct Options {
    int64_t batch = 64;
    int threads = 1;
    double distill = 0.5;  // the model's share; 1: labels are not looked at
    size_t samples = 0;    // of the data set
  };
  static Result<std::unique_ptr<ExitTargets>> create(const ElasticModel& model,
                                                     const std::vector<std::shared_ptr<Backend>>& backends,
                                                     const Options& options);
  // By image and class, until the next call; rows sum to 1. kInvalidArgument when the model has no such
  // class. REQUIRES: a full batch
  Result<std::span<const float>> of(const Batch& batch);
  int64_t classes() const { return classes_; }

 private:
  explicit ExitTargets(const Options& options) : options_(options) {}
  Status ask_model(const Batch& batch);

  const Options options_;
  int64_t classes_ = 0;
  std::unique_ptr<Session> model_;
  std::vector<float> answers_;  // by sample and class: probabilities
  std::vector<bool> known_;     // by sample
  std::vector<float> targets_;  // of the batch
};

}  // namespace limber
