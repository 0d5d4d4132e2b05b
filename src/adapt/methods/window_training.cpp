#include "adapt/methods/window_training.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "passes/classifier.h"

namespace limber::adapt {

WindowTraining::WindowTraining(const AdaptedModel& model, WindowRecipe recipe)
    : model_(model), recipe_(std::move(recipe)) {
  model_.graph = logits_of(model.graph);
}

// The loss says nothing of the last update.
Status WindowTraining::check_trained(const WindowTargets& targets) const {
  for (const std::string& name : targets.names) {
    LIMBER_ASSIGN(const Tensor tensor, model_.weights->get(name));
    const auto values = tensor.data<float>();
    if (std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); })) continue;
    return error(Code::kInternal,
                 "'{}': '{}' holds what is no number after {} steps; the rate {} is too high", recipe_.method,
                 name, recipe_.steps, recipe_.rate(0));
  }
  return {};
}

Result<std::vector<std::string>> WindowTraining::trainable() const {
  StepOptions options;
  options.batch = 2;
  LIMBER_ASSIGN(const Graph prepared, prepare_model(model_.graph, options));
  return trainable_parameters(prepared);
}

Result<std::unique_ptr<TrainingSession>> WindowTraining::make_session(int64_t batch,
                                                                      const WindowTargets& targets) const {
  TrainingOptions options{.threads = model_.threads, .max_plans = 1};
  options.step = {.batch = batch,
                  .loss = recipe_.loss,
                  .soft_targets = recipe_.soft_targets,
                  .optimizer = recipe_.optimizer,
                  .batch_norm = BatchNormMode::kBatch};
  options.choose = [names = targets.names](const Graph&, const std::vector<std::string>&) {
    return Result(names);
  };
  options.channels = targets.channels;
  return TrainingSession::create(model_.graph, model_.weights, model_.backends, options);
}

Status WindowTraining::run(const Tensor& images, const WindowTargets& targets, const Before& before) {
  const int64_t batch = images.shape().dim(0);
  LIMBER_ASSIGN(TrainingSession * session,
                sessions_.get(batch, [&] { return make_session(batch, targets); }));
  LIMBER_TRY(session->set_trained(targets.names, recipe_.thrift, targets.channels));
  for (int step = 0; step < recipe_.steps; ++step) {
    if (model_.go_on && !model_.go_on())
      return error(Code::kResourceExhausted, "'{}' was stopped at step {} of {}", recipe_.method, step,
                   recipe_.steps);
    std::memcpy(session->images().raw(), images.raw(), images.bytes());
    if (before) LIMBER_TRY(before(*session, step));
    session->set_rate(recipe_.rate(step));
    LIMBER_ASSIGN(const float loss, session->step());
    if (!std::isfinite(loss)) {
      return error(Code::kInternal,
                   "'{}': the loss of step {} on {} images is {}; the images may hold what is no number, or "
                   "the rate {} is too high",
                   recipe_.method, step, batch, loss, recipe_.rate(step));
    }
  }
  return check_trained(targets);
}

}  // namespace limber::adapt
