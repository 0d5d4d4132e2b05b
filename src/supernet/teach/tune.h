// Training whole variants with labels, after their alternatives have learnt to replace single blocks.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "data/loader.h"
#include "passes/answers.h"
#include "record/elastic_records.h"
#include "runtime/session.h"
#include "supernet/teach/chain.h"
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
  // So many variants learn from each batch. What the original says of it is computed once for them.
  size_t at_once = 3;
  uint64_t seed = 0;
  // That the model gives. What is no class of an image has no labels: it is learnt from the original alone.
  Answers answers = Answers::kClasses;
  // Of values each output of the model counts the same, whatever its numbers are: batches say how they
  // spread.
  std::vector<Tensor> examples;
};

// Trains the parameters that the alternatives of some variants have of their own, each variant as a whole and
// all of them by turns, since they have most of these in common; what is the original's stays as it is,
// statistics of normalisation too. Use from one thread.
class VariantTuner {
 public:
  // `model` must outlive it. Variants come in the order of their latency. kInvalidArgument when the model
  // gives other answers.
  static Result<std::unique_ptr<VariantTuner>> create(ElasticModel& model,
                                                      std::span<const TimedVariant> variants,
                                                      const std::vector<std::shared_ptr<Backend>>& backends,
                                                      const TuneOptions& options);
  // Some variants, spread over all, take a step each: at `rate` the fastest, at less those that are nearer to
  // the original and have less to learn. Returns the mean of their losses before.
  // REQUIRES: as many images as the batch, students() > 0
  Result<double> step(const Batch& batch, double rate);
  size_t students() const { return students_.size(); }  // variants with something to train

 private:
  struct Student {
    std::unique_ptr<TrainingSession> training;
    double rate;  // of the fastest variant's
  };

  explicit VariantTuner(const TuneOptions& options) : options_(options), random_(options.seed) {}
  Status add(ElasticModel& model, const TimedVariant& variant,
             const std::vector<std::shared_ptr<Backend>>& backends);
  Status measure_spread(const Graph& base);
  Result<Graph> learnt(const Graph& variant) const;
  std::vector<size_t> draw();
  Status set_targets(const Batch& batch);
  void set_class_targets(const Batch& batch, const Tensor& output);

  const TuneOptions options_;
  std::vector<int64_t> sizes_;  // of values, by output: elements of a sample
  std::vector<float> scales_;
  std::unique_ptr<Session> original_;
  std::shared_ptr<WorkArena> memory_;
  std::vector<Student> students_;  // by variant
  std::set<std::string> trained_;  // parameters
  Tensor targets_;                 // of the last batch
  Random random_;
};

// Into the folder's TeachingNote: the variants that were tuned.
void note_tuned(const ElasticModel& model, std::span<const TimedVariant> tuned, TeachingNote& note);
// The variants that were tuned, as the folder's TeachingNote says. What the model does not have is left out.
// Where it does not say what one takes, its share is 0.
std::vector<TimedVariant> tuned_chain(const ElasticModel& model, const ElasticInfo& info);
std::vector<Variant> tuned_variants(const ElasticModel& model, const ElasticInfo& info);
std::vector<Variant> variants_of(std::span<const TimedVariant> chain);

// By block and alternative: is it part of one of them?
std::vector<std::vector<bool>> used_by(const ElasticModel& model, std::span<const Variant> variants);

}  // namespace limber
