// Runs a variant with its exits: stage by stage, until one is sure enough.
#pragma once

#include <memory>
#include <vector>

#include "runtime/session.h"
#include "variant/elastic_model.h"

namespace limber {

struct ExitRunnerOptions {
  int64_t batch = 1;
  int threads = 1;
};

// Has a session for every stage: the blocks up to an exit, and the exit; behind the last exit the rest of the
// blocks. Exits are passed in the order of their places; one that lies inside an alternative that spans it
// is passed over. Use from one thread. The model must outlive it.
class ExitRunner {
 public:
  // kInvalidArgument when the model is no classifier or has no such variant, or the variant ends with an
  // exit.
  static Result<std::unique_ptr<ExitRunner>> create(const ElasticModel& model, const Variant& variant,
                                                    const std::vector<std::shared_ptr<Backend>>& backends,
                                                    const ExitRunnerOptions& options = {});

  size_t endings() const { return stages_.size(); }  // exits that are passed, and the end of the model
  // Which exit of the model ends this stage; -1 for the last.
  int exit(size_t ending) const { return stages_[ending].exit; }
  // Of the stage by itself.
  const Graph& graph(size_t ending) const { return stages_[ending].graph; }

  struct Answer {
    Tensor output;      // what the model gives, until the next run
    size_t ending = 0;  // where it left
    double confidence = 0;
  };
  // One image leaves at the first exit that is at least so sure; with 0 at the end of the model.
  // REQUIRES: a batch of 1
  Result<Answer> run(const Tensor& image, double confidence);
  // Every stage, whatever exits say: answers by ending, which stay until the next run. The images may be
  // fewer than the batch; rows behind them mean nothing.
  Result<std::vector<Tensor>> run_all(const Tensor& images);

  bool gives_probabilities() const { return last_ == OpKind::kSoftmax; }
  // The greatest probability of a row of what the model or an exit gives.
  double confidence(const Tensor& output, size_t row) const;

 private:
  struct Stage {
    int exit = -1;
    Graph graph;  // outputs: features and the exit's answer; of the last stage the answer
    std::unique_ptr<Session> session;

    Tensor answer() const { return session->output(exit < 0 ? 0 : 1); }
  };
  ExitRunner() = default;

  std::vector<Stage> stages_;
  OpKind last_ = OpKind::kIdentity;  // Softmax, LogSoftmax: what the model gives; others: logits
};

}  // namespace limber
