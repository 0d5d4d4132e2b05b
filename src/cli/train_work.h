// A training as the options of limber train describe it.
#pragma once

#include "cli/progress.h"
#include "cli/train_arguments.h"

namespace limber {

// Trains to the end, or until stop_asked(), into the folder that the options name. Fills in the batch where
// it is not given. REQUIRES: complete()
Result<TrainingSummary> run_training(TrainCommand& options, TrainingTalk talk);

}  // namespace limber
