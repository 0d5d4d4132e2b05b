// Teaching all alternatives of an elastic model, for as long as there is time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "data/loader.h"
#include "supernet/distill.h"

namespace limber {

struct ElastifyProgress {
  double seconds = 0, of_seconds = 0;
  int64_t images = 0;
  double error = 0;  // mean over the alternatives, lately
};

struct ElastifyOptions {
  DistillOptions distill;
  double seconds = 600;       // how long it teaches, in all
  double seconds_before = 0;  // of these, how many are over: by a process before this one
  double rate = 1e-3;         // falls to 0 in the course of them
  int64_t judge_batches = 8;  // that errors are measured on at the end
  double save_every = 60;     // seconds
  uint64_t seed = 0;
  AugmentOptions input;
  OnBadImage on_bad_image = OnBadImage::kFail;
  int workers = 1;
  std::function<void(const ElastifyProgress&)> progress;
  // Now and then, and at the end: what is there is worth keeping. A failure ends the work.
  std::function<Status(double seconds)> save;
  const std::atomic<bool>* stop = nullptr;
};

// Returns how many seconds are over: as many as asked for, unless it was stopped. Errors of all alternatives
// are up to date then.
Result<double> teach_alternatives(ElasticModel& model, std::shared_ptr<const Dataset> data,
                                  const std::vector<std::shared_ptr<Backend>>& backends,
                                  const ElastifyOptions& options);

}  // namespace limber
