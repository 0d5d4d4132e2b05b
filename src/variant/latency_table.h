// How long every alternative takes on this machine, and what that says about whole variants.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "variant/elastic_model.h"
#include "variant/measure.h"

namespace limber {

// Plain numbers, to be stored as they are. Seconds are of one sample.
struct LatencyTable {
  // A variant that was measured as a whole.
  struct Sample {
    Variant variant;
    double seconds = 0;
  };

  struct ExitTime {
    int after = 0;  // so many blocks run before it
    double seconds = 0;
  };

  int threads = 1;
  std::vector<std::vector<double>> blocks;  // by block and alternative, as they run inside variants
  std::vector<ExitTime> exits;
  std::vector<Sample> samples;  // that the above was learnt from; the original first

  double seconds(size_t block, size_t choice) const { return blocks[block][choice]; }
  // The sum over what the variant chooses, its exit included; without confidence.
  // REQUIRES: a variant of the model this is the table of
  double predict(const Variant& variant) const;
  double original() const;
  // kInvalidArgument when the table is not one of this model.
  Status check(const ElasticModel& model) const;
};

struct LatencyOptions {
  MeasureOptions measure{.seconds = 0.06};  // of each whole variant
  int cover = 3;  // every alternative is in so many of the variants that are measured; 1 or more
  uint64_t seed = 0;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(int done, int count)> progress;  // after each variant that was made ready
};

// Whole variants are measured, step by step, and each alternative gets what its own steps took there: alone,
// layouts and so implementations may be others than inside a variant. Few variants hold all alternatives.
// kResourceExhausted when the flag stopped it.
Result<LatencyTable> measure_latency_table(const ElasticModel& model,
                                           const std::vector<std::shared_ptr<Backend>>& backends,
                                           const LatencyOptions& options = {});

// Seconds of variants as one graph each, in turns: what predict() is to be compared with.
Result<std::vector<double>> measure_variants(const ElasticModel& model, std::span<const Variant> variants,
                                             const std::vector<std::shared_ptr<Backend>>& backends,
                                             const MeasureOptions& options = {});
Result<double> measure_variant(const ElasticModel& model, const Variant& variant,
                               const std::vector<std::shared_ptr<Backend>>& backends,
                               const MeasureOptions& options = {});

}  // namespace limber
