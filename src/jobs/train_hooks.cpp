#include "jobs/train_hooks.h"

#include "base/clock.h"
#include "base/show.h"

namespace limber {
namespace {

std::string show_left(double seconds) {
  const auto total = static_cast<int64_t>(seconds);
  if (total >= 3600) return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
  return fmt::format("{}:{:02}", total / 60, total % 60);
}

}  // namespace

ProgressTeller::ProgressTeller(const JobControl& control, int64_t epochs)
    : control_(control), epochs_(epochs), start_(now_seconds()) {}

Status ProgressTeller::on_step_end(TrainingSession& /*session*/, const StepReport& report) {
  if (control_.observer == nullptr) return {};
  const TrainingState& state = report.state;
  const double epochs = static_cast<double>(state.epoch) +
                        static_cast<double>(state.batch) / static_cast<double>(report.batches);
  const double share = epochs / static_cast<double>(epochs_);
  if (first_ < 0) {
    first_ = share;  // nothing is known yet of how long the rest takes
    return {};
  }
  const double left = (now_seconds() - start_) * (1 - share) / std::max(share - first_, 1e-9);
  const std::string text = fmt::format(
      "epoch {}/{}  loss {:.4f}  accuracy {:.1f} % of {} images  {:.0f} images/s  {} left", state.epoch + 1,
      epochs_, state.loss_sum / static_cast<double>(state.batch),
      100.0 * static_cast<double>(state.correct) / static_cast<double>(std::max<int64_t>(1, state.images)),
      state.images, static_cast<double>(state.images) / std::max(state.seconds, 1e-9), show_left(left));
  control_.progress({.stage = "training", .share = share, .text = text});
  return {};
}

Status FeatureTeller::on_step_end(TrainingSession& session, const StepReport& /*report*/) {
  const FeatureState state = session.features();
  if (state == told_) return {};
  told_ = state;
  const std::string needed = show_bytes(static_cast<double>(session.feature_bytes()));
  if (state == FeatureState::kReady) {
    control_.note(NoteKind::kNote, fmt::format("the features of all images are known ({})", needed));
  } else if (state == FeatureState::kNone) {
    control_.note(NoteKind::kWarning,
                  "there are no features to keep: nothing below what is trained is constant");
  } else if (state == FeatureState::kTooLarge) {
    control_.note(NoteKind::kWarning,
                  fmt::format("features are not kept: they need {}, cache-features allows {}", needed,
                              show_bytes(static_cast<double>(session.options().feature_bytes))));
  }
  return {};
}

Status ElasticTeller::on_step_begin(TrainingSession& /*session*/, const TrainingState& /*state*/) {
  if (!watch_.new_rho) return {};
  const std::optional<double> share = watch_.new_rho();
  if (!share) return {};
  if (!(*share > 0 && *share <= 1)) {
    control_.note(NoteKind::kWarning, fmt::format("rho {:g} should be above 0 and at most 1; it stays {:g}",
                                                  *share, elastic_.rho()));
    return {};
  }
  control_.note(NoteKind::kNote,
                fmt::format("the share of time is {:g} from now on and was {:g}", *share, elastic_.rho()));
  elastic_.set_rho(*share);
  return {};
}

Status ElasticTeller::on_step_end(TrainingSession& /*session*/, const StepReport& report) {
  const std::string now = elastic_.summary();
  if (now.empty() || now == said_) return {};
  said_ = now;
  control_.note(NoteKind::kNote, fmt::format("step {}: {}", report.state.step, now));
  const std::string problem = shortfall(elastic_.selection(), elastic_.rho());
  if (!problem.empty()) control_.note(NoteKind::kWarning, problem);
  return {};
}

std::string shortfall(const Selection& selection, double rho) {
  if (selection.within || selection.share <= rho) return {};
  return fmt::format("no choice is as fast as rho {:g} asks; the fastest takes {:.0f} % of the time of all",
                     rho, 100 * selection.share);
}

std::string never_chose(int64_t updates, double rho) {
  return fmt::format(
      "rho {:g} has saved no time: the {} updates of this training were over before it was known what each "
      "tensor costs; train for more epochs, or with a smaller batch",
      rho, updates);
}

}  // namespace limber
