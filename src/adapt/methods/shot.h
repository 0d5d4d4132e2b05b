// SHOT: everything but the classifier, by the information in the predictions of a window.
#pragma once

#include <optional>

#include "adapt/methods/filters.h"
#include "adapt/methods/reader.h"

namespace limber::adapt {

struct ShotOptions {
  int64_t batch = 100;
  int steps = 100;  // each over the whole window
  double rate = 6e-4, momentum = 0.9, decay = 1e-3;
  bool nesterov = false;
  // The rate of step t of T is rate * (1 + 10 t/T)^-0.75 instead of constant.
  bool annealed = false;
  // Above 0: that much of the cross entropy with pseudo_labels(), which are guessed anew every `refresh`
  // steps.
  double pseudo_share = 0;
  int refresh = 10;
  // Below 1: only the filters that hold this share of the gradients are trained, chosen on each window; see
  // choose_filters().
  double filter_share = 1;
};

// Information maximisation alone.
ShotOptions shot_im();
// With pseudo-labels, as published: annealed, Nesterov, the pretrained part at a tenth of 0.01.
ShotOptions shot_with_labels();

// Every window starts with a new optimiser, from the weights that the one before left.
class Shot : public Strategy {
 public:
  static Result<std::unique_ptr<Strategy>> create(const AdaptedModel& model, const ShotOptions& options);
  std::string_view name() const override { return options_.pseudo_share > 0 ? "shot" : "shot-im"; }
  int64_t batch() const override { return options_.batch; }
  Result<bool> adapt(const Tensor& images) override;
  Status reset() override;

 private:
  Shot(const AdaptedModel& model, const ShotOptions& options);
  Status guess_labels(const Tensor& images, TrainingSession& session) const;

  AdaptedModel model_;
  ShotOptions options_;
  WindowTraining training_;
  TargetChooser targets_;
  std::unique_ptr<Reader> reader_;  // for pseudo-labels
};

}  // namespace limber::adapt
