// How long a graph takes on this machine.
#pragma once

#include <memory>
#include <vector>

#include "ir/graph.h"
#include "ir/parameters.h"
#include "runtime/backend.h"

namespace limber {

struct MeasureOptions {
  int threads = 1;
  double seconds = 0.05;  // about so long it runs in all, warm-up apart
  int min_runs = 10;
  int max_runs = 200;
};

// Seconds of one inference of one sample (1 for every symbolic dimension): what the quickest tenth of several
// runs after a warm-up stays within, since whatever else the machine does only adds to a time. Inputs are
// random numbers, or zeros where they are no floats. Works for a model and for a block.
Result<double> measure_latency(const Graph& graph, std::shared_ptr<Parameters> params,
                               const std::vector<std::shared_ptr<Backend>>& backends,
                               const MeasureOptions& options = {});

}  // namespace limber
