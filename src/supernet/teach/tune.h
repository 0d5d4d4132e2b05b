// Training whole variants with labels, after their alternatives have learnt to replace single blocks.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/loader.h"
#include "runtime/session.h"
#include "supernet/search/search_space.h"
#include "train/training_session.h"
#include "variant/elastic_manifest.h"

namespace limber {

struct TuneOptions {
  int64_t batch = 32;
  int threads = 1;
  OptimizerOptions optimizer{.kind = OptimizerKind::kAdamW};
  // Targets are this share of the label and for the rest what the original model says; 0: labels are not
  // looked at.
  double label_share = 0.5;
};

// Trains the parameters that the alternatives of some variants have of their own, each variant as a whole;
// what is the original's stays as it is, statistics of normalisation too. Use from one thread.
class VariantTuner {
 public:
  // `model` must outlive it. kInvalidArgument when the model is no classifier.
  static Result<std::unique_ptr<VariantTuner>> create(ElasticModel& model, std::span<const Variant> variants,
                                                      const std::vector<std::shared_ptr<Backend>>& backends,
                                                      const TuneOptions& options);
  // The next variant in turn takes a step. Returns its loss before that.
  // REQUIRES: as many images as the batch, students() > 0
  Result<double> step(const Batch& batch, double rate);
  size_t students() const { return trainings_.size(); }  // variants with something to train

 private:
  VariantTuner(const TuneOptions& options, int64_t classes) : options_(options), classes_(classes) {}
  Status add(ElasticModel& model, const Variant& variant,
             const std::vector<std::shared_ptr<Backend>>& backends);
  Status set_targets(const Batch& batch, Tensor targets);

  const TuneOptions options_;
  const int64_t classes_;
  std::unique_ptr<Session> original_;
  std::shared_ptr<WorkArena> memory_;
  std::vector<std::unique_ptr<TrainingSession>> trainings_;  // by variant
  size_t next_ = 0;
};

// For each share of the original's latency the variant that the errors of its alternatives make look best;
// each once, and none where there is none.
Result<std::vector<Variant>> promising_variants(const SearchSpace& space, std::span<const double> shares);

// The variants that were tuned, as the folder's TeachingNote says. What the model does not have is left out.
std::vector<Variant> tuned_variants(const ElasticModel& model, const ElasticInfo& info);

// By block and alternative: is it part of one of them?
std::vector<std::vector<bool>> used_by(const ElasticModel& model, std::span<const Variant> variants);

}  // namespace limber
