// Runs a variant with its exits: stage by stage, until one is sure enough.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "supernet/block_runner.h"
#include "supernet/exit_calibration.h"
#include "supernet/measure.h"

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

// What all endings say about the images of a set of the runner's batch. Seconds are left at 0.
// kInvalidArgument when the set has no images or no labels. kResourceExhausted when `stop` became true
// meanwhile.
Result<ExitOutcomes> judge_exits(ExitRunner& runner, const EvaluationSet& set,
                                 const std::atomic<bool>* stop = nullptr);

// Fills in the seconds: sums of what the stages take by themselves, and of what a variant that ends with an
// exit takes as a whole.
Status time_exits(const ElasticModel& model, const Variant& variant, const ExitRunner& runner,
                  const std::vector<std::shared_ptr<Backend>>& backends, const MeasureOptions& options,
                  ExitOutcomes& outcomes);

struct RealLatency {
  double seconds = 0;       // mean over the images, with exits
  double full_seconds = 0;  // the model that the variant was made from, on the same images in turn
  int64_t images = 0;
};

// Image by image, as they would come; each several times, of which the quickest counts.
// REQUIRES: images of batches of any size
Result<RealLatency> measure_real_latency(const ElasticModel& model, const Variant& variant,
                                         const EvaluationSet& set, int64_t images,
                                         const std::vector<std::shared_ptr<Backend>>& backends, int threads);

}  // namespace limber
