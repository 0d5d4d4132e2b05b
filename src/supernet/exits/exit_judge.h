// How good exits are, and what they take: on images, on this machine.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "supernet/exits/exit_calibration.h"
#include "variant/block_runner.h"
#include "variant/exit_runner.h"
#include "variant/measure.h"

namespace limber {

// What all endings say about the images of a set of the runner's batch. Seconds are left at 0.
// kInvalidArgument when the set has no images or no labels. kResourceExhausted when `stop` became true
// meanwhile.
Result<ExitOutcomes> judge_exits(ExitRunner& runner, const EvaluationSet& set,
                                 const std::atomic<bool>* stop = nullptr);

// Fills in the seconds: sums of what the stages take by themselves, and of what a variant that ends with an
// exit takes as a whole.
Status time_exits(const ElasticModel& model, const Variant& variant, const ExitRunner& runner,
                  const std::vector<std::shared_ptr<Backend>>& backends, const MeasureOptions& options,
                  ExitOutcomes& outcomes);

struct RealLatency {
  double seconds = 0;       // mean over the images, with exits
  double full_seconds = 0;  // the model that the variant was made from, on the same images in turn
  int64_t images = 0;
};

// Image by image, as they would come; each several times, of which the quickest counts.
// REQUIRES: images of batches of any size
Result<RealLatency> measure_real_latency(const ElasticModel& model, const Variant& variant,
                                         const EvaluationSet& set, int64_t images,
                                         const std::vector<std::shared_ptr<Backend>>& backends, int threads);

}  // namespace limber
