#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"

namespace limber {
namespace {

constexpr double kBarSeconds = 0.1, kLineSeconds = 30;
constexpr size_t kBarWidth = 24;

std::string show_time(double seconds) {
  const auto total = static_cast<int64_t>(seconds);
  if (total >= 3600) return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
  return fmt::format("{}:{:02}", total / 60, total % 60);
}

}  // namespace

std::string progress_bar(double share) {
  const auto filled = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * kBarWidth);
  return "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "]";
}

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) != 0), shown_(now_seconds()) {}

void ProgressLine::show(const std::string& text) {
  const double now = now_seconds();
  if (now - shown_ < (terminal_ ? kBarSeconds : kLineSeconds)) return;
  shown_ = now;
  visible_ = terminal_;
  fmt::print(stderr, "{}{}{}", terminal_ ? "\r\x1b[K" : "", text, terminal_ ? "" : "\n");
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (visible_) fmt::print(stderr, "\r\x1b[K");
  visible_ = false;
}

Progress::Progress(int64_t epochs, TrainingTalk talk, const std::string& name)
    : epochs_(epochs),
      talk_(talk),
      name_(name.empty() ? "" : fmt::format("{:<8}", name)),
      terminal_(::isatty(STDERR_FILENO) != 0),
      start_(now_seconds()),
      shown_(start_) {}

Status Progress::on_step_end(TrainingSession& /*session*/, const StepReport& report) {
  const double now = now_seconds();
  if (now - shown_ >= (terminal_ ? kBarSeconds : kLineSeconds)) show(report, now);
  return {};
}

void Progress::show(const StepReport& report, double now) {
  const TrainingState& state = report.state;
  if (state.seconds <= 0) return;  // the first step of an epoch: nothing is known of it yet
  shown_ = now;
  double done = static_cast<double>(state.batch) / static_cast<double>(report.batches);
  double taken = state.seconds;
  if (talk_ == TrainingTalk::kBar) {
    done = (static_cast<double>(state.epoch) + done) / static_cast<double>(epochs_);
    taken = now - start_;
  }
  const double rate = static_cast<double>(state.images) / std::max(state.seconds, 1e-9);
  const double left = taken * (1 - done) / std::max(done, 1e-9);
  const std::string text = fmt::format(
      "loss {:.4f}  accuracy {:.1f} %  {:.0f} images/s  {} left",
      state.loss_sum / static_cast<double>(state.batch),
      100.0 * static_cast<double>(state.correct) / static_cast<double>(std::max<int64_t>(1, state.images)),
      rate, show_time(left));
  if (!terminal_) {
    fmt::print(stderr, "{}epoch {}/{}  {:.0f} %  {}\n", name_, state.epoch + 1, epochs_, 100 * done, text);
    return;
  }
  fmt::print(stderr, "\r\x1b[K{}epoch {}/{} {} {}", name_, state.epoch + 1, epochs_, progress_bar(done),
             text);
  std::fflush(stderr);
  visible_ = true;
}

void Progress::clear() {
  if (visible_) fmt::print(stderr, "\r\x1b[K");
  visible_ = false;
}

Status Progress::on_epoch_end(const EpochReport& report) {
  if (talk_ == TrainingTalk::kBar) return {};
  clear();
  std::string validation;
  if (report.validation) {
    validation = fmt::format("  val loss {:.4f}  val accuracy {:.2f} %{}", report.validation->loss,
                             100 * report.validation->top1, report.best ? " (best)" : "");
  }
  fmt::print(
      stderr, "epoch {}/{}  loss {:.4f}  accuracy {:.2f} %{}  lr {:.3g}  {:.1f} s  {:.0f} images/s{}\n",
      report.epoch, epochs_, report.loss, 100 * report.accuracy, validation, report.rate, report.seconds,
      report.images_per_second, report.skipped > 0 ? fmt::format("  {} images skipped", report.skipped) : "");
  return {};
}

}  // namespace limber
