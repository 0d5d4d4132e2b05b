// What a surrogate learns from one window.
#pragma once

#include <memory>
#include <vector>

#include "adapt/methods/filters.h"

namespace limber::adapt {

struct SurrogateTraining {
  // Each over the whole window; 0: statistics alone are adapted. Of 5 to 20 steps at 1e-3 to 3e-2 these were
  // best on the tuning families (docs/adaptation-surrogates.md): more of either learns the window by heart.
  int steps = 5;
  double rate = 1e-3, momentum = 0.9, decay = 1e-3;
  // Only the filters that hold this share of the gradients are trained; see choose_filters().
  double filter_share = 0.8;
  // Beside the information in the predictions, so much of the cross entropy with those of the master: it is
  // the larger network, and looks at the window by the window's own statistics. 0: information alone.
  double teacher_share = 1;
};
Status check(const SurrogateTraining& options);

// A new optimiser for each window, from the weights that the one before left.
class SurrogateTrainer {
 public:
  // REQUIRES: check(options), steps above 0
  static Result<std::unique_ptr<SurrogateTrainer>> create(const AdaptedModel& surrogate,
                                                          const SurrogateTraining& options);
  // `teacher`: the master's probabilities, by image; not read without a share of it. REQUIRES: check_images()
  Status run(const Tensor& images, const std::vector<std::vector<double>>& teacher);

 private:
  SurrogateTrainer(const AdaptedModel& surrogate, const SurrogateTraining& options);

  AdaptedModel model_;
  SurrogateTraining options_;
  WindowTraining training_;
  TargetChooser targets_;
};

}  // namespace limber::adapt
