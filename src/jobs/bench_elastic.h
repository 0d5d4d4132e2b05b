// What a bench worker answers about elastic training.
#pragma once

#include <memory>
#include <string>

#include "base/random.h"
#include "elastic/elastic_trainer.h"
#include "jobs/bench_worker.h"

namespace limber {

class ElasticAnswers {
 public:
  explicit ElasticAnswers(const BenchWorker& worker) : worker_(worker) {}

  // Times the parts of the training step, `runs` times each.
  Result<std::string> survey(int runs);
  // The predicted and the measured time of a step that trains a random `share` of the tensors, and of full
  // training in turns with it.
  Result<std::string> random_mask(double share, int runs);
  // The same for the best choice in `rho` of the time, with importances measured in a few steps.
  Result<std::string> share(double rho, int runs);

 private:
  // Looks at the times of a few steps.
  Status observe(const TensorMask& mask);
  Result<std::string> compare(const TensorMask& mask, double predicted, int runs);
  Result<std::vector<double>> importance(double rho);

  const BenchWorker& worker_;
  std::unique_ptr<StepCosts> costs_;
  Random random_{1};
};

}  // namespace limber
