#include "adapt/surrogate/surrogate_training.h"

namespace limber::adapt {
namespace {

WindowRecipe recipe_of(const SurrogateTraining& o) {
  const bool taught = o.teacher_share > 0;
  return {.method = "surrogate",
          .loss = {.kind = taught ? LossKind::kShot : LossKind::kInfoMax, .pseudo_share = o.teacher_share},
          .optimizer = {.momentum = o.momentum, .decay = o.decay},
          .steps = o.steps,
          .rate = [rate = o.rate](int) { return rate; },
          .soft_targets = taught};
}

}  // namespace

Status check(const SurrogateTraining& options) {
  if (options.steps < 0)
    return invalid("a surrogate is trained for {} steps, expected 0 or more", options.steps);
  if (!(options.teacher_share >= 0))
    return invalid("the master's answers count {}, expected 0 or more", options.teacher_share);
  return {};
}

SurrogateTrainer::SurrogateTrainer(const AdaptedModel& surrogate, const SurrogateTraining& options)
    : model_(surrogate), options_(options), training_(surrogate, recipe_of(options)) {}

Result<std::unique_ptr<SurrogateTrainer>> SurrogateTrainer::create(const AdaptedModel& surrogate,
                                                                   const SurrogateTraining& options) {
  std::unique_ptr<SurrogateTrainer> made(new SurrogateTrainer(surrogate, options));
  LIMBER_ASSIGN(made->targets_, TargetChooser::create(surrogate, made->training_, options.filter_share));
  return made;
}

Status SurrogateTrainer::run(const Tensor& images, const std::vector<std::vector<double>>& teacher) {
  LIMBER_ASSIGN(const WindowTargets chosen, targets_.choose(images));
  const auto before = [&](TrainingSession& session, int step) -> Status {
    if (options_.teacher_share == 0 || step > 0) return {};
    Tensor targets = session.targets();
    const auto to = targets.data<float>();
    size_t i = 0;
    for (const auto& row : teacher) {
      for (const double p : row) to[i++] = static_cast<float>(p);
    }
    LIMBER_ASSERT(i == to.size());
    return {};
  };
  LIMBER_TRY(training_.run(images, chosen, before));
  forget_optimizer(*model_.weights);
  return {};
}

}  // namespace limber::adapt
