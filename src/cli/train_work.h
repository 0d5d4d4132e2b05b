// A training as the options of limber train describe it.
#pragma once

#include "cli/progress.h"
#include "cli/train_arguments.h"

namespace limber {

// How a training is told, and who else takes part in it.
struct TrainingStage {
  TrainingTalk talk = TrainingTalk::kAll;
  std::string name;             // before its bar, where several trainings take turns
  TrainerHook* hook = nullptr;  // after all others
};

// Trains to the end, or until stop_asked(), into the folder that the options name. Fills in the batch where
// it is not given. REQUIRES: complete()
Result<TrainingSummary> run_training(TrainCommand& options, const TrainingStage& stage = {});

}  // namespace limber
