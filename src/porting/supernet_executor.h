// Goals are kept by variants of an elastic model: each is searched for near its parent's.
#pragma once

#include <functional>

#include "porting/executor.h"
#include "porting/workshop.h"
#include "supernet/search/search.h"

namespace limber {

struct SupernetOptions {
  // Variants that a goal tries at most, those that are known already included; fewer where its parent is
  // near.
  int evaluations = 60;
  std::vector<Variant> seeds;  // tried first by every goal, where they are allowed
  int64_t epochs = 0;          // of training what was found, with the parent's weights where it has the same
  uint64_t seed = 0;
  EvaluateVariants evaluate;  // accuracies
  std::function<void(int done, int of)> progress;
};

// The model and the workshop must outlive it.
Result<std::unique_ptr<Executor>> make_supernet_executor(const ElasticModel& model, const Workshop& shop,
                                                         SupernetOptions options);

}  // namespace limber
