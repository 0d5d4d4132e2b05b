// How long graphs take on this machine, by runtime/timing.h.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "ir/graph.h"
#include "ir/parameters.h"
#include "runtime/session.h"
#include "runtime/timing.h"

namespace limber {

struct MeasureOptions {
  int threads = 1;
  double seconds = 0.05;  // about so long each graph runs in all, warm-up apart
  int min_rounds = 4;     // see TimingOptions
};

// The quick time of one inference of one sample (1 for every symbolic dimension). Inputs are random numbers,
// or zeros where they are no floats. Works for a model and for a block.
Result<double> measure_latency(const Graph& graph, std::shared_ptr<Parameters> params,
                               const std::vector<std::shared_ptr<Backend>>& backends,
                               const MeasureOptions& options = {});

// Several graphs, timed in turns: a machine gets faster and slower, and what is compared must meet the same.
class TurnMeter {
 public:
  TurnMeter(std::shared_ptr<Parameters> params, std::vector<std::shared_ptr<Backend>> backends,
            const MeasureOptions& options)
      : params_(std::move(params)),
        backends_(std::move(backends)),
        threads_(options.threads),
        timer_({.seconds = options.seconds, .min_rounds = options.min_rounds}) {}

  // Compiles one more, for one sample.
  Status add(const Graph& graph);
  // Runs all in turns, so often as the options say, or until `stop`, which is kResourceExhausted.
  Status run(const std::atomic<bool>* stop = nullptr) { return timer_.run(stop); }

  size_t size() const { return sessions_.size(); }
  // Quick times. REQUIRES: run() was ok
  double seconds(size_t graph) const { return timer_.seconds(graph); }
  std::vector<double> step_seconds(size_t graph) const { return timer_.part_seconds(graph); }
  const Plan& plan(size_t graph) const { return sessions_[graph]->plan(); }

 private:
  const std::shared_ptr<Parameters> params_;
  const std::vector<std::shared_ptr<Backend>> backends_;
  const int threads_;
  std::vector<std::unique_ptr<Session>> sessions_;
  TurnTimer timer_;
};

}  // namespace limber
