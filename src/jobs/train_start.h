// What a training begins with, from a model's file or from a checkpoint.
#pragma once

#include "jobs/classifier.h"
#include "jobs/train_settings.h"

namespace limber {

struct TrainStart {
  Model model;       // optimiser state included when a training goes on
  Preprocess input;  // what images become
  TrainingState state;
  OptionTexts options;  // what the outcome depends on, beside the settings
  OptionTexts notes;    // of the checkpoint
  std::shared_ptr<const Dataset> data, validation;
  ValidatedOn validated_on = ValidatedOn::kNothing;
};

Result<TrainStart> begin_training(const TrainJobOptions& options, const JobControl& control);

// Refuses when the model, the images or what is asked for is not what the checkpoint was made with.
Result<TrainStart> go_on(const TrainJobOptions& options, Checkpoint checkpoint, const JobControl& control);

}  // namespace limber
