// Following a stream of images without labels: what a model does in a world that drifts, what is noticed of
// it, and what a strategy makes of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapt/follower.h"
#include "data/loader.h"
#include "jobs/adapt_score.h"
#include "jobs/adapt_strategies.h"
#include "jobs/source.h"

namespace limber {

struct AdaptJobOptions : JobOptions {
  std::string stream;  // see data/stream_spec.h
  // Labelled images like those the model was trained on, but none of these. Empty: `source_images` of the
  // stream's own data set, which the stream then does not show.
  std::string data;
  size_t source_images = 2000;
  int64_t window = 100;  // frames that are scored together, and run together
  std::string strategy = "none";  // one of adapt_strategies()
  bool guard = true;  // false: whatever is learnt answers
  adapt::DriftOptions drift;
  ImageOptions image;
  int workers = kAutoWorkers;
};
Status check(const AdaptJobOptions& options);

struct AdaptAlarm {
  int64_t frame = 0, since = 0;
  std::string feature;
  std::string domain;  // that the frame is really of
};

struct AdaptResult {
  std::vector<WindowScore> windows;
  std::vector<DomainChange> changes;
  std::vector<AdaptAlarm> alarms;
  std::vector<adapt::FollowEvent> events;  // alarms included
  AlarmScore alarm_score;
  StreamScore score;
  double source_accuracy = 0;
  int64_t frames = 0;
  int64_t source_images = 0;
  adapt::FollowCounts counts;
  size_t skipped = 0;       // frames that could not be read; the next one counts twice instead
  size_t detector_bytes = 0;
};

// The stream is scored as it comes: every window by a model that has not seen it, which then may learn from
// its images. Nothing when it was stopped before the first window; a stop later leaves a result of what was
// seen.
Result<std::optional<AdaptResult>> run_adapt(const AdaptJobOptions& options, const JobControl& control = {});

}  // namespace limber
