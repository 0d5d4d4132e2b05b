#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "cli/say.h"

namespace limber {
namespace {

// Between two: as often as an eye follows on a terminal, and so that a log of hours can still be read.
constexpr double kBarSeconds = 0.1, kLineSeconds = 30;
constexpr size_t kBarWidth = 24;  // characters: leaves room for the text beside it in a line of 80

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
  say("{}{}{}", terminal_ ? "\r\x1b[K" : "", text, terminal_ ? "" : "\n");
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (visible_) say("\r\x1b[K");
  visible_ = false;
}

}  // namespace limber
