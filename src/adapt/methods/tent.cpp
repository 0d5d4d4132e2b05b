#include "adapt/methods/tent.h"

namespace limber::adapt {
namespace {

WindowRecipe tent_recipe(const TentOptions& options) {
  return {.method = "tent",
          .loss = {.kind = LossKind::kEntropy},
          .optimizer = {.kind = OptimizerKind::kAdam},
          .steps = options.steps,
          .rate = [rate = options.rate](int) { return rate; }};
}

}  // namespace

Tent::Tent(const AdaptedModel& model, const TentOptions& options)
    : model_(model), options_(options), training_(model, tent_recipe(options)) {}

Result<std::unique_ptr<Strategy>> Tent::create(const AdaptedModel& model, const TentOptions& options) {
  if (options.steps < 1) return invalid("'tent' trains for {} steps, expected 1 or more", options.steps);
  std::unique_ptr<Tent> made(new Tent(model, options));
  LIMBER_ASSIGN(made->statistics_, StatisticsPass::create(model, made->name()));
  made->targets_.names = affine_names(made->statistics_->norms());
  return std::unique_ptr<Strategy>(std::move(made));
}

Result<bool> Tent::adapt(const Tensor& images) {
  LIMBER_TRY(check_images(model_.graph, images));
  LIMBER_TRY(training_.run(images, targets_));
  LIMBER_TRY(statistics_->run(images, 0));
  return true;
}

Status Tent::reset() {
  forget_optimizer(*model_.weights);
  return {};
}

}  // namespace limber::adapt
