#include "adapt/methods/shot.h"

#include <algorithm>
#include <cmath>

#include "adapt/methods/pseudo_labels.h"

namespace limber::adapt {
namespace {

WindowRecipe shot_recipe(const ShotOptions& o) {
  const bool labels = o.pseudo_share > 0;
  return {.method = labels ? "shot" : "shot-im",
          .loss = {.kind = labels ? LossKind::kShot : LossKind::kInfoMax, .pseudo_share = o.pseudo_share},
          .optimizer = {.momentum = o.momentum, .nesterov = o.nesterov, .decay = o.decay},
          .steps = o.steps,
          .rate = [rate = o.rate, annealed = o.annealed, steps = o.steps](int step) {
            return annealed ? rate * std::pow(1 + 10.0 * step / steps, -0.75) : rate;
          }};
}

Status check_options(const ShotOptions& o) {
  if (o.steps < 1) return invalid("'shot' trains for {} steps, expected 1 or more", o.steps);
  if (o.refresh < 1) return invalid("'shot' guesses labels every {} steps, expected 1 or more", o.refresh);
  return {};
}

}  // namespace

ShotOptions shot_im() { return {}; }

ShotOptions shot_with_labels() {
  return {.rate = 1e-3, .nesterov = true, .annealed = true, .pseudo_share = 0.3};
}

Shot::Shot(const AdaptedModel& model, const ShotOptions& options)
    : model_(model), options_(options), training_(model, shot_recipe(options)) {}

Result<std::unique_ptr<Strategy>> Shot::create(const AdaptedModel& model, const ShotOptions& options) {
  LIMBER_TRY(check_options(options));
  std::unique_ptr<Shot> made(new Shot(model, options));
  LIMBER_ASSIGN(made->targets_, TargetChooser::create(model, made->training_, options.filter_share));
  if (options.pseudo_share > 0) {
    LIMBER_ASSIGN(made->reader_, Reader::create(model));
  }
  return std::unique_ptr<Strategy>(std::move(made));
}

Result<bool> Shot::adapt(const Tensor& images) {
  LIMBER_TRY(check_images(model_.graph, images));
  LIMBER_ASSIGN(const WindowTargets chosen, targets_.choose(images));
  const auto before = [&](TrainingSession& session, int step) {
    const bool due = reader_ != nullptr && step % options_.refresh == 0;
    return due ? guess_labels(images, session) : Status();
  };
  LIMBER_TRY(training_.run(images, chosen, before));
  forget_optimizer(*model_.weights);
  return true;
}

Status Shot::guess_labels(const Tensor& images, TrainingSession& session) const {
  LIMBER_ASSIGN(const Reading reading, reader_->read(images));
  const std::vector<int64_t> labels = pseudo_labels(reading.logits, reading.features);
  std::copy(labels.begin(), labels.end(), session.labels().data<int64_t>().begin());
  return {};
}

Status Shot::reset() {
  forget_optimizer(*model_.weights);
  return {};
}

}  // namespace limber::adapt
