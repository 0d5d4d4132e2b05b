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

ProgressTeller::ProgressTeller(const JobControl& control, const TrainerOptions& options)
    : control_(control), options_(options), start_(now_seconds()) {}

Status ProgressTeller::on_begin(TrainingSession& /*session*/, const TrainingState& /*state*/,
                                const TrainingLength& length) {
  length_ = &length;
  return {};
}

Status ProgressTeller::on_step_end(TrainingSession& /*session*/, const StepReport& report) {
  if (control_.observer == nullptr) return {};
  const bool by_clock = options_.time.given();
  if (by_clock && length_->left_s < 0) return {};  // the first updates find out
  if (options_.time.speedup > 0 && !told_limit_) {
    told_limit_ = true;
    control_.note(NoteKind::kNote,
                  fmt::format("{} left: 1/{:g} of the time that training everything would take",
                              show_left(length_->left_s), options_.time.speedup));
  }
  const TrainingState& state = report.state;
  const double share = length_->done;
  if (first_ < 0) {
    first_ = share;  // nothing is known yet of how long the rest takes
    return {};
  }
  const double left =
      by_clock ? length_->left_s : (now_seconds() - start_) * (1 - share) / std::max(share - first_, 1e-9);
  const auto images = static_cast<double>(state.images);
  const std::string speed =  // an epoch's first update is timed when it is over
      state.seconds > 0 ? fmt::format("  {:.0f} images/s", images / state.seconds) : std::string();
  const std::string text = fmt::format("epoch {}  loss {:.4f}  accuracy {:.1f} % of {} images{}  {} left",
                                       epoch_text(state.epoch + 1, by_clock ? 0 : options_.epochs),
                                       state.loss_sum / static_cast<double>(state.batch),
                                       100.0 * static_cast<double>(state.correct) / std::max(1.0, images),
                                       state.images, speed, show_left(left));
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
  if (elastic_.by_rate()) {
    control_.note(NoteKind::kWarning,
                  "this training has no share (rho) that could change; it goes on as it was");
    return {};
  }
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

std::string never_chose(int64_t updates, const ElasticTrainer& elastic) {
  const std::string before = fmt::format(
      "the {} updates of this training were over before it was known what each tensor costs", updates);
  if (elastic.by_rate())
    return fmt::format("everything was trained all the time: {}; give more time, or a smaller batch", before);
  return fmt::format("rho {:g} has saved no time: {}; train for more epochs, or with a smaller batch",
                     elastic.rho(), before);
}

std::string epoch_text(int64_t epoch, int64_t epochs) {
  return epochs > 0 ? fmt::format("{}/{}", epoch, epochs) : fmt::format("{}", epoch);
}

}  // namespace limber
