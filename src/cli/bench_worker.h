// limber bench --worker: a harness drives several engines through lines on stdin and stdout.
#pragma once

#include <functional>

#include "runtime/session.h"
#include "train/training_session.h"

namespace limber {

// What is measured: a run of a session, or a training step.
using BenchRun = std::function<Status()>;

struct BenchWorker {
  BenchRun run;
  const Plan* plan = nullptr;
  Session* session = nullptr;           // of inference, or
  TrainingSession* training = nullptr;  // of training
  size_t idle_bytes = 0;                // resident before the model was loaded
};

// Says "ready" and answers lines until "quit", the end of input or the first one that fails. What they are
// is in bench/README.md.
Status serve_lines(const BenchWorker& worker);
Status serve_lines(const std::function<Result<std::string>(const std::string& line)>& answer);

Result<double> timed_run(const BenchRun& run);  // seconds

}  // namespace limber
