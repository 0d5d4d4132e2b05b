#include "jobs/adapt_score.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace limber {

AlarmScore score_alarms(std::vector<DomainChange>& changes, std::span<const int64_t> alarms) {
  AlarmScore score;
  std::vector<double> delays;
  size_t next = 0;
  const auto false_until = [&](int64_t frame) {
    for (; next < alarms.size() && alarms[next] < frame; ++next) ++score.false_alarms;
  };
  for (DomainChange& change : changes) {
    false_until(change.frame);
    if (next < alarms.size() && alarms[next] < change.until) {
      change.delay = alarms[next++] - change.frame + 1;
      delays.push_back(static_cast<double>(*change.delay));
      score.longest_delay = std::max(score.longest_delay, *change.delay);
      ++score.found;
    } else {
      change.delay.reset();
      ++score.missed;
    }
    false_until(change.until);
  }
  score.false_alarms += static_cast<int64_t>(alarms.size() - next);
  score.median_delay = median(delays);
  return score;
}

namespace {

// The most that the frozen model was better over windows that together have `span` frames or more, at least
// 0.
std::optional<double> worst_loss(std::span<const WindowScore> windows, int64_t span) {
  std::optional<double> worst;
  double lost = 0;
  int64_t frames = 0;
  size_t first = 0;
  for (const WindowScore& window : windows) {
    lost += (window.frozen - window.accuracy) * static_cast<double>(window.frames);
    frames += window.frames;
    for (; frames - windows[first].frames >= span; ++first) {
      lost -= (windows[first].frozen - windows[first].accuracy) * static_cast<double>(windows[first].frames);
      frames -= windows[first].frames;
    }
    if (frames >= span) worst = std::max(worst.value_or(0), lost / static_cast<double>(frames));
  }
  return worst;
}

}  // namespace

StreamScore score_windows(std::span<const WindowScore> windows, int64_t span) {
  StreamScore score;
  std::vector<WindowScore> labelled;
  int64_t pure = 0;
  for (const WindowScore& window : windows) {
    if (!window.labelled || !window.scored) continue;
    labelled.push_back(window);
    score.frames += window.frames;
    score.accuracy += window.accuracy * static_cast<double>(window.frames);
    score.frozen += window.frozen * static_cast<double>(window.frames);
    if (window.mixed) continue;
    ++pure;
    score.estimate_error += std::abs(window.estimate - window.frozen);
    score.atc_error += std::abs(window.atc - window.frozen);
    score.doc_error += std::abs(window.doc - window.frozen);
    score.answers_error += std::abs(window.answers_estimate - window.accuracy);
  }
  if (score.frames > 0) {
    score.accuracy /= static_cast<double>(score.frames);
    score.frozen /= static_cast<double>(score.frames);
  }
  if (pure > 0) {
    for (double* sum : {&score.estimate_error, &score.atc_error, &score.doc_error, &score.answers_error})
      *sum /= static_cast<double>(pure);
  }
  score.worst_below_frozen = worst_loss(labelled, span);
  return score;
}

}  // namespace limber
