// What is learnt from labelled images of the source before a model meets the world: what is normal, how sure
// it is where it is right, and images that every later form of it must still know.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "adapt/drift.h"
#include "adapt/estimate.h"
#include "adapt/strategy.h"
#include "data/loader.h"

namespace limber::adapt {

struct SourceStudy {
  DriftDetector detector;
  AccuracyEstimator estimator;
  // Kept for judging: f32[n,C,H,W] as the model wants them, spread evenly over the images studied.
  Tensor images;
  std::vector<int64_t> labels;
  int64_t studied = 0;  // images that were looked at
};

struct StudyOptions {
  Preprocess input;  // what images become for the model
  int workers = kAutoWorkers;
  size_t kept = 200;  // images kept for judging; each candidate is asked about all of them
  // So many of the images are also corrupted in each of twelve ways, to learn by how much estimates of the
  // accuracy are off in other domains.
  size_t corrupted = 200;
  DriftOptions drift;
};

// Takes about as long as answering so many images. kInvalidArgument for too few images (kMinReference).
// Nothing when `stop` said so.
Result<std::optional<SourceStudy>> study_source(const AdaptedModel& model,
                                                const std::shared_ptr<const Dataset>& data,
                                                const StudyOptions& options,
                                                const std::function<bool()>& stop = nullptr);

}  // namespace limber::adapt
