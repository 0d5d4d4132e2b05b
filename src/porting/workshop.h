// What executors train and judge with.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "ir/model.h"
#include "porting/goals.h"
#include "runtime/backend.h"
#include "train/trainer.h"

namespace limber {

struct Workshop {
  std::shared_ptr<const Dataset> data, judged;  // to learn from, to judge by
  std::vector<std::shared_ptr<Backend>> backends;
  int threads = 1;
  TrainerOptions training;                  // of each goal; threads and what images become included
  const std::atomic<bool>* stop = nullptr;  // kResourceExhausted once it is true

  bool stopped() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
};

// A network of its own with the same weights: nothing is copied that neither changes.
Result<Model> own_copy_of(const Model& model);

// Of one sample, compiled for this machine.
Result<double> memory_of(const Workshop& shop, const Model& model);
Result<PortCost> cost_of(const Workshop& shop, const Model& model);

// The first `images` of the data in an order drawn by `seed`, or all when it is 0, for `epochs`. The
// parameters of `model` are those that are trained.
struct TrainingRun {
  int64_t epochs = 1;
  size_t images = 0;
  uint64_t seed = 0;
  std::vector<TrainerHook*> hooks;
};
Status train(const Workshop& shop, Model& model, const TrainingRun& run);

Result<double> accuracy_of(const Workshop& shop, const Model& model);

}  // namespace limber
