// How long graphs take on this machine.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "ir/graph.h"
#include "ir/parameters.h"
#include "runtime/session.h"

namespace limber {

struct MeasureOptions {
  int threads = 1;
  double seconds = 0.05;  // about so long each graph runs in all, warm-up apart
  int min_runs = 10;
  int max_runs = 200;
};

// Seconds of one inference of one sample (1 for every symbolic dimension): what the quickest tenth of several
// runs after a warm-up stays within, since whatever else the machine does only adds to a time. Inputs are
// random numbers, or zeros where they are no floats. Works for a model and for a block.
Result<double> measure_latency(const Graph& graph, std::shared_ptr<Parameters> params,
                               const std::vector<std::shared_ptr<Backend>>& backends,
                               const MeasureOptions& options = {});

// Several graphs, timed in turns: a machine gets faster and slower, and what is compared must meet the same.
class TurnMeter {
 public:
  TurnMeter(std::shared_ptr<Parameters> params, std::vector<std::shared_ptr<Backend>> backends,
            const MeasureOptions& options)
      : params_(std::move(params)), backends_(std::move(backends)), options_(options) {}

  // Compiles one more, for one sample.
  Status add(const Graph& graph);
  // Runs all in turns, so often as the options say, or until `stop`, which is kResourceExhausted.
  Status run(const std::atomic<bool>* stop = nullptr);

  size_t size() const { return entries_.size(); }
  // REQUIRES: run() was ok. What a graph takes while the machine is quick: in each round it is compared with
  // what the others take in that round.
  double seconds(size_t graph) const;
  std::vector<double> step_seconds(size_t graph) const;  // the same by step of the plan
  const Plan& plan(size_t graph) const { return entries_[graph].session->plan(); }

 private:
  struct Entry {
    std::unique_ptr<Session> session;
    std::vector<double> turns;               // by round: seconds of the quickest run
    std::vector<std::vector<double>> steps;  // by step and round: in that run
  };
  Status turn(Entry& entry);
  void compare_rounds();
  double typical(const std::vector<double>& by_round) const;

  const std::shared_ptr<Parameters> params_;
  const std::vector<std::shared_ptr<Backend>> backends_;
  const MeasureOptions options_;
  std::vector<Entry> entries_;
  std::vector<double> slowness_;  // by round: of the machine; 1 when it is quick
};

}  // namespace limber
