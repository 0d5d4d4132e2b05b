// What the options of a training come to once defaults are filled in.
#pragma once

#include "jobs/train_job.h"

namespace limber {

struct TrainSettings {
  Strategy strategy = Strategy::kFull;    // not kAuto
  TrainerOptions trainer;                 // but for what the images become
  std::optional<ElasticOptions> elastic;  // nothing for strategies whose choice is fixed
};

// REQUIRES: check(options)
TrainSettings settle(const TrainJobOptions& options);

// What the outcome depends on, by name.
OptionTexts describe(const TrainSettings& settings);

// What makes an image different in every epoch, so that its features cannot be kept; empty: nothing.
std::string_view varies_images(const TrainerOptions& trainer);

}  // namespace limber
