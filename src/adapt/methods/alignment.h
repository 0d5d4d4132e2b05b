// Alignment: features of the window are pulled to where those of the source were.
#pragma once

#include <span>

#include "adapt/methods/filters.h"
#include "adapt/methods/reader.h"

namespace limber::adapt {

// What is kept of the source: what its images became before the classifier.
struct SourceFeatures {
  Tensor rows;  // f32[n,D]

  std::vector<double> mean() const;
  std::vector<double> deviation() const;   // as LossKind::kMoments compares it
  std::vector<double> covariance() const;  // [D,D], unbiased
  double bandwidth() const;                // mean squared distance of two different rows; of one row 1
};

// Of batches of images of the source (which need no labels), at most `limit` of them, the first ones.
Result<SourceFeatures> collect_source_features(const AdaptedModel& model, std::span<const Tensor> batches,
                                               int64_t limit = 256);

struct AlignmentOptions {
  int64_t batch = 100;
  LossKind loss = LossKind::kKernel;  // or kMoments, kCovariance
  int steps = 20;
  double rate = 1e-2, momentum = 0.9, decay = 0;
  double filter_share = 1;  // see ShotOptions
};

// Everything but the classifier is trained, with a new optimiser for every window.
class Alignment : public Strategy {
 public:
  static Result<std::unique_ptr<Strategy>> create(const AdaptedModel& model, SourceFeatures source,
                                                  const AlignmentOptions& options);
  std::string_view name() const override { return "align"; }
  int64_t batch() const override { return options_.batch; }
  Result<bool> adapt(const Tensor& images) override;
  Status reset() override;

 private:
  Alignment(const AdaptedModel& model, SourceFeatures source, const AlignmentOptions& options);
  void fill_source(TrainingSession& session) const;

  AdaptedModel model_;
  SourceFeatures source_;
  AlignmentOptions options_;
  WindowTraining training_;
  TargetChooser targets_;
};

}  // namespace limber::adapt
