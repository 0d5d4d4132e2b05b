// How good a classifier is on a data set.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "data/judge_input.h"
#include "data/loader.h"
#include "ir/graph.h"
#include "ir/parameters.h"
#include "passes/classifier.h"
#include "runtime/session.h"

namespace limber {

struct EvaluationOptions {
  int64_t batch =
      64;  // images at a time; the last time what is left. A model with a fixed batch uses its own
  int threads = 1;
  int workers = kAutoWorkers;
  Preprocess input;
  OnBadImage on_bad_image = OnBadImage::kFail;
  // Told of every image: its index in the data, its class and what the model says. May be empty.
  std::function<void(uint32_t sample, int64_t label, std::span<const float> logits)> each;
  // Where it runs, shared with others that run in turn; null: memory of its own.
  std::shared_ptr<WorkArena> memory;
};

struct Evaluation {
  double loss = 0;            // mean cross entropy
  double top1 = 0, top5 = 0;  // share of images whose class is the best, among the best five
  int64_t images = 0;
  int64_t not_numbers = 0;  // images whose logits hold a NaN; all other numbers here mean nothing then
  size_t skipped = 0;       // images that could not be read; the image after each counts twice instead
  double seconds = 0;
};

// Compiles the model for inference once (normalisation folded) and runs it as often as asked, each time with
// the parameters as they are then. Holds no packed weights between two runs. Use from one thread.
class Evaluator {
 public:
  static Result<std::unique_ptr<Evaluator>> create(const Graph& model, std::shared_ptr<Parameters> params,
                                                   std::vector<std::shared_ptr<Backend>> backends,
                                                   std::shared_ptr<const Dataset> data,
                                                   const EvaluationOptions& options);
  // Nothing when `stop` became true meanwhile.
  Result<std::optional<Evaluation>> run(const std::atomic<bool>* stop = nullptr);
  // What run() should take, by the median of up to three batches.
  Result<double> estimate_seconds();
  // Do the model's answers on some of these images say that it was trained with other pixels? A hint: where
  // no preprocessing is saved with a model, nor asked for.
  Result<InputVerdict> judge();

 private:
  Result<std::optional<Evaluation>> evaluate(const std::atomic<bool>* stop);
  Evaluator(std::unique_ptr<Session> session, std::unique_ptr<Loader> loader,
            decltype(EvaluationOptions::each) each)
      : session_(std::move(session)), loader_(std::move(loader)), each_(std::move(each)) {}
  std::unique_ptr<Session> session_;
  std::unique_ptr<Loader> loader_;
  const decltype(EvaluationOptions::each) each_;
};

// kInvalidArgument naming the first image whose class the model does not have.
Status check_labels(const Dataset& data, int64_t classes);

}  // namespace limber
