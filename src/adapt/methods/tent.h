// Tent: the scale and shift of every batch normalisation, by the entropy of predictions.
#pragma once

#include "adapt/methods/batch_norm.h"
#include "adapt/methods/window_training.h"

namespace limber::adapt {

struct TentOptions {
  int64_t batch = 100;
  double rate = 1e-3;  // of Adam, whose state goes on from window to window
  int steps = 1;       // over each window
};

// Afterwards the running statistics are those of the window, by the new weights: the model is read by running
// statistics, where Tent reads it by those of each batch.
class Tent : public Strategy {
 public:
  static Result<std::unique_ptr<Strategy>> create(const AdaptedModel& model, const TentOptions& options);
  std::string_view name() const override { return "tent"; }
  int64_t batch() const override { return options_.batch; }
  Result<bool> adapt(const Tensor& images) override;
  Status reset() override;

 private:
  Tent(const AdaptedModel& model, const TentOptions& options);

  AdaptedModel model_;
  TentOptions options_;
  WindowTargets targets_;
  WindowTraining training_;
  std::unique_ptr<StatisticsPass> statistics_;
};

}  // namespace limber::adapt
