// A model that is measured by a harness, which drives several engines through lines of text.
#pragma once

#include <functional>
#include <memory>
#include <string>

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

// Answers the lines that bench/README.md describes. The worker must outlive it.
class BenchAnswers {
 public:
  explicit BenchAnswers(const BenchWorker& worker);
  ~BenchAnswers();
  BenchAnswers(const BenchAnswers&) = delete;
  BenchAnswers& operator=(const BenchAnswers&) = delete;
  Result<std::string> answer(const std::string& line);

 private:
  class Verbs;
  const std::unique_ptr<Verbs> verbs_;
};

}  // namespace limber
