// How well drifts were noticed and accuracy was estimated, where the truth is known.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace limber {

// A domain begins that is not the one before.
struct DomainChange {
  int64_t frame = 0;
  int64_t until = 0;  // the next change, or the end
  std::string domain;
  std::optional<int64_t>
      delay;  // frames to the first alarm; nothing when there was none until the next change
};

struct AlarmScore {
  int64_t false_alarms = 0;  // before any change, or not the first since one
  int64_t found = 0, missed = 0;
  double median_delay = 0;  // frames, of those found
  int64_t longest_delay = 0;
};

// Sets the delays. Both in the order of time; changes lie next to each other.
AlarmScore score_alarms(std::vector<DomainChange>& changes, std::span<const int64_t> alarms);

struct WindowScore {
  int64_t first = 0, frames = 0;
  std::string domain;                     // of the first frame
  bool mixed = false;                     // with frames of another
  bool labelled = true;                   // or of pure noise
  bool scored = true;                     // false: shown to learn from alone
  double accuracy = 0;                    // of the model as it is adapted
  double frozen = 0;                      // of the model as it came
  double estimate = 0, atc = 0, doc = 0;  // of `frozen`, without labels
  double answers_estimate = 0;            // of `accuracy`, the same
  int64_t found = 0;                      // domain, by the detector's number, at the end
  std::string net;                        // that answered last
};

struct StreamScore {
  int64_t frames = 0;  // that have a label, and count
  double accuracy = 0, frozen = 0;
  // The most that adapting lost in `span` frames in a row, as a share; nothing: there are not so many.
  std::optional<double> worst_below_frozen;
  // Mean absolute, over windows of one domain.
  double estimate_error = 0, atc_error = 0, doc_error = 0, answers_error = 0;
};
// `span`: frames over which adapting must not lose. Windows without labels, and those not scored, do not
// count.
StreamScore score_windows(std::span<const WindowScore> windows, int64_t span);

}  // namespace limber
