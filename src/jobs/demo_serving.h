// The demonstration's last chapter: an elastic model is served while a neighbour comes and goes.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "jobs/job.h"
#include "report/demo_serving.h"
#include "serve/governor.h"

namespace limber {

struct ServingTrialOptions {
  static constexpr int kMostWorkers = 4;  // one thread sends requests for all of them

  std::string folder;    // an elastic model
  std::string data;      // labelled images that are sent
  int64_t images = 500;  // at most; over and over
  int workers = 0;  // requests that are computed at the same time; 0: one for each core, up to kMostWorkers
  // Each brings so many images that the fixed model takes about so long for it. A neighbour has a core for a
  // few milliseconds at a time: whatever is much shorter waits for its turn or does not, and its shape
  // decides nothing.
  double request_s = 0.015;
  double finding_s = 3;            // that rate and budget are found in
  double idle_s = 4, busy_s = 10;  // the script: idle, busy, idle
  double use = 0.4;    // share of what the fixed model can do on the idle machine that is asked of it
  double slack = 1.3;  // budget by what nine of ten requests to the fixed model take then
  uint64_t seed = 0;   // of the times at which requests are due
};

// Serves in this process, without sockets. Every policy gets the same images at the same times. Use from one
// thread; a stop that is asked for is obeyed within a fraction of a second, with kResourceExhausted.
class ServingTrial {
 public:
  // Times the model and reads the images.
  static Result<std::unique_ptr<ServingTrial>> open(const ServingTrialOptions& options,
                                                    const JobControl& control);
  virtual ~ServingTrial() = default;

  // How many requests a second there will be, and their budget, by the fixed model alone on the machine.
  virtual Status find_budget() = 0;
  // The whole script. REQUIRES: find_budget() was ok
  virtual Status play(const std::string& name, Policy policy) = 0;

  virtual const DemoServing& outcome() const = 0;
};

}  // namespace limber
