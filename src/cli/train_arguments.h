// The options of limber train.
#pragma once

#include "cli/image_arguments.h"
#include "cli/options.h"
#include "train/trainer.h"

namespace limber {

struct TrainCommand : CommonOptions {
  std::string data, validation, output;
  bool resume = false;
  std::string init = "model", head = "auto", bad_images = "fail";
  ImageOptions image;
  std::string optimizer = "sgd", schedule = "cosine", bn = "batch";
  double rate = 0, decay = -1;  // 0 and -1: the default of the optimiser
  TrainerOptions trainer;       // what has no field of its own above
};

void declare_train(Arguments& arguments, TrainCommand& options);

// The trainer's options for images of this kind. REQUIRES: the names in `command` were checked
TrainerOptions trainer_options(const TrainCommand& command, const AugmentOptions& input);

}  // namespace limber
