// Steps of training over the images of one window, all of them in every step.
#pragma once

#include <functional>

#include "adapt/by_size.h"
#include "adapt/strategy.h"
#include "train/training_session.h"

namespace limber::adapt {

struct WindowRecipe {
  std::string method;  // named in messages
  LossOptions loss;
  OptimizerOptions optimizer;
  int steps = 1;
  std::function<double(int step)> rate;  // steps count from 0
  bool soft_targets = false;             // see StepOptions
  Thrift thrift = Thrift::kTime;
};

// What is trained: parameters, and of those that `channels` names only these channels.
struct WindowTargets {
  std::vector<std::string> names;
  TrainedChannels channels;
};

// Normalises by the statistics of the images; running ones follow as in training (PyTorch's 0.1). The state
// of the optimiser stays with the weights, see forget_optimizer().
class WindowTraining {
 public:
  WindowTraining(const AdaptedModel& model, WindowRecipe recipe);

  // What the loss compares with is filled in by `before`, which is called before every step; may be empty.
  using Before = std::function<Status(TrainingSession& session, int step)>;
  // kInternal when the loss or a trained weight is not a number. REQUIRES: check_images(); targets are
  // trainable
  Status run(const Tensor& images, const WindowTargets& targets, const Before& before = nullptr);

  // All that can be trained, in the order the model reads it.
  Result<std::vector<std::string>> trainable() const;

 private:
  Result<std::unique_ptr<TrainingSession>> make_session(int64_t batch, const WindowTargets& targets) const;
  Status check_trained(const WindowTargets& targets) const;

  AdaptedModel model_;  // its graph gives logits
  WindowRecipe recipe_;
  BySize<TrainingSession> sessions_;
};

}  // namespace limber::adapt
