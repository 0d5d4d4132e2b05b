// Runs and training steps on random numbers: what is measured when only time matters.
#pragma once

#include <memory>

#include "jobs/source.h"
#include "train/training_session.h"

namespace limber {

// The learning rate of measured steps: small enough to leave the weights as they are.
inline constexpr double kBenchRate = 1e-6;

// SGD with momentum on random images and labels; all tensors (`last` 0), or the last few.
Result<std::unique_ptr<TrainingSession>> build_training(const Model& model, const JobOptions& options,
                                                        int last, const JobControl& control = {});
// Uniform in [0, 1) for floats, small non-negative numbers for integers; the same for a seed.
void fill_random(Session& session, uint64_t seed);

}  // namespace limber
