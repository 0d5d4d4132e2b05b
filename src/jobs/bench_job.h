// How long a run of a model, or a training step, takes here, and how steadily.
#pragma once

#include "jobs/bench_worker.h"
#include "jobs/source.h"

namespace limber {

struct BenchJobOptions : JobOptions {
  bool train = false;  // a training step (SGD with momentum) instead of an inference
  int last = 0;        // above 0: a training step, of the last tensors only
  int runs = 0;        // 0: what fits `seconds`
  double seconds = 3;
  int warm_up = 5;  // runs before
};
Status check(const BenchJobOptions& options);

// A model, compiled and warmed up on random numbers: to be measured, or to be driven by a harness.
class BenchModel {
 public:
  static Result<BenchModel> open(const BenchJobOptions& options);

  const BenchWorker& worker() const { return worker_; }
  double compile_seconds() const { return compile_seconds_; }

 private:
  BenchModel() = default;
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<TrainingSession> training_;
  BenchWorker worker_;  // refers to these
  double compile_seconds_ = 0;
};

struct BenchResult {
  std::vector<double> seconds;  // of each run, rising; every one counts, bursts of other load included
  double mean = 0;
  int64_t batch = 1;
  int threads = 1;
  size_t arena_bytes = 0, planned_bytes = 0;
  double compile_seconds = 0;

  // The smallest time that at least this share of the runs did not exceed.
  double percentile(double share) const;
  double per_second() const { return static_cast<double>(batch) / mean; }
};

Result<BenchResult> measure(const BenchModel& model, const BenchJobOptions& options);

}  // namespace limber
