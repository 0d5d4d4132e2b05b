// The options of limber train.
#pragma once

#include "cli/arguments.h"
#include "jobs/train_job.h"

namespace limber {

struct TrainCommand : TrainJobOptions {
  bool json = false;
};

void declare_train(Arguments& arguments, TrainCommand& options);

}  // namespace limber
