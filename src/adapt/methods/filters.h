// Which filters are worth training on a window.
#pragma once

#include "adapt/by_size.h"
#include "adapt/methods/parts.h"
#include "adapt/methods/window_training.h"

namespace limber::adapt {

// The filters of a convolution and the normalisation that reads it.
struct FilterScores {
  std::string weight;
  NormNames norm;
  std::vector<double> scores;  // by filter
};

// Convolutions with weights of their own that a batch normalisation reads, without scores.
std::vector<FilterScores> normalised_filters(const Graph& graph);

struct FilterChoice {
  WindowTargets targets;  // weights, scales and shifts of the chosen filters
  size_t chosen = 0, of = 0;
};

// The fewest filters, of all layers together, that hold `share` of the sum of the scores (at least one; of
// equal ones the first). REQUIRES: at least one score, none negative
FilterChoice choose_filters(const std::vector<FilterScores>& layers, double share);

// |gradient of the scale| + |gradient of the shift| of each filter's channel: how far it would move on these
// images. The gradient of a filter is about proportional, and costs much more.
class FilterRanking {
 public:
  // kInvalidArgument when no convolution is followed by batch normalisation.
  static Result<std::unique_ptr<FilterRanking>> create(const AdaptedModel& model, const LossOptions& loss);
  // Changes nothing. REQUIRES: check_images(); a loss that compares with nothing
  Result<std::vector<FilterScores>> rank(const Tensor& images);

 private:
  explicit FilterRanking(const AdaptedModel& model) : model_(model) {}
  Result<std::unique_ptr<Session>> compile_step(int64_t batch) const;

  AdaptedModel model_;  // its graph gives logits
  LossOptions loss_;
  std::vector<FilterScores> layers_;
  BySize<Session> sessions_;
};

// What a method that trains features trains on a window: everything but the classifier or, of a share below
// 1, the filters that hold this share of what information maximisation would move.
class TargetChooser {
 public:
  static Result<TargetChooser> create(const AdaptedModel& model, const WindowTraining& training,
                                      double share);
  Result<WindowTargets> choose(const Tensor& images);

 private:
  double share_ = 1;
  WindowTargets all_;
  std::unique_ptr<FilterRanking> ranking_;
};

}  // namespace limber::adapt
