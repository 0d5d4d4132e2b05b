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
#include "record/adapt_records.h"

namespace limber {

struct AdaptJobOptions : JobOptions {
  std::string stream;  // see data/stream_spec.h
  // Labelled images like those the model was trained on, but none of these. Empty: `source_images` of the
  // stream's own data set, which the stream then does not show.
  std::string data;
  size_t source_images = 2000;
  int64_t window = 100;           // frames that are scored together, and run together
  std::string strategy = "none";  // one of adapt_strategies()
  StrategySettings settings;      // its folder is set by the job: inside of `output`
  bool guard = true;              // false: whatever is learnt answers
  // The stream says where its domains begin, and nothing looks for drift; a domain that comes again is known
  // for what it is. Every visit is learnt from once, from its first `window` frames, and scored by all
  // others: how strategies are compared.
  bool borders_known = false;
  adapt::DriftOptions drift;
  ImageOptions image;
  int workers = kAutoWorkers;
  // Folder where what happens is recorded, and from which a run that ended early goes on; empty: nowhere. Its
  // parent must be there.
  std::string output;
  bool resume = false;       // goes on where the run stopped; from the start when it has not begun
  double save_every_s = 10;  // where it stands, at least so often
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
  std::vector<AdaptEventRecord> events;  // alarms included
  AlarmScore alarm_score;
  StreamScore score;
  double source_accuracy = 0;
  int64_t frames = 0;
  int64_t source_images = 0;
  adapt::FollowCounts counts;
  size_t detector_bytes = 0;
};

// The stream is scored as it comes: every window by a model that has not seen it, which then may learn from
// its images. Nothing when it was stopped before the first window; a stop later leaves a result of what was
// seen.
// `model` may also be the folder of a master (`elastify --gates`), which is followed with its gates.
Result<std::optional<AdaptResult>> run_adapt(const AdaptJobOptions& options, const JobControl& control = {});

}  // namespace limber
