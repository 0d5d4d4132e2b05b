// The options of limber train.
#pragma once

#include "cli/image_arguments.h"
#include "cli/options.h"
#include "elastic/elastic_trainer.h"
#include "train/trainer.h"

namespace limber {

struct TrainCommand : CommonOptions {
  std::string data, validation, output;
  bool resume = false;
  std::string init = "model", head = "auto", bad_images = "fail";
  ImageOptions image;
  std::string optimizer = "sgd", schedule = "cosine", bn = "auto";
  double rate = 0, decay = -1;  // 0 and -1: the default of the optimiser
  std::string strategy = "auto", importance = "gain";
  double speedup = 0, rho = 0;  // 0: not given
  ElasticOptions elastic;       // what has no field of its own above
  TrainerOptions trainer;       // what has no field of its own above
};

void declare_train(Arguments& arguments, TrainCommand& options);

// Fills in what follows from other options. Fails when they contradict each other.
Status complete(TrainCommand& command);

// How tensors are chosen while training; nothing for strategies whose choice is fixed.
// REQUIRES: complete()
std::optional<ElasticOptions> elastic_options(const TrainCommand& command);

// The trainer's options for images of this kind. REQUIRES: complete()
TrainerOptions trainer_options(const TrainCommand& command, const Preprocess& input);

}  // namespace limber
