// How long every alternative takes on this machine, and what that says about whole variants.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "supernet/measure.h"
#include "variant/elastic_model.h"

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
  std::vector<std::vector<double>> blocks;  // by block and alternative
  std::vector<ExitTime> exits;
  // What an alternative takes inside a variant is correction * max(seconds - border, 0): at the borders of
  // what runs alone data are brought into plain layout, which a whole plan has no need of.
  double border = 0, correction = 1;
  std::vector<Sample> samples;  // that border and correction were learnt from; the original first

  double seconds(size_t block, size_t choice) const { return inside(blocks[block][choice]); }
  // The sum over what the variant chooses, its exit included; without confidence.
  // REQUIRES: a variant of the model this is the table of
  double predict(const Variant& variant) const;
  double original() const;
  // kInvalidArgument when the table is not one of this model.
  Status check(const ElasticModel& model) const;

 private:
  double inside(double alone) const { return correction * (alone > border ? alone - border : 0); }
};

struct LatencyOptions {
  MeasureOptions measure{.seconds = 0.01};
  int rounds = 2;   // all is measured so often, and the least counts: others on the machine only ever add
  int samples = 4;  // whole variants that are measured, the original and the fastest among them; 1 or more
  uint64_t seed = 0;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(int done, int count)> progress;  // after each measurement
};

// Originals are measured alone. Other alternatives are measured between the original neighbours and compared
// with the originals there: alone, layouts and so implementations may be others than inside a variant.
// kResourceExhausted when the flag stopped it.
Result<LatencyTable> measure_latency_table(const ElasticModel& model,
                                           const std::vector<std::shared_ptr<Backend>>& backends,
                                           const LatencyOptions& options = {});

// Seconds of the variant as one graph: what predict() is to be compared with.
Result<double> measure_variant(const ElasticModel& model, const Variant& variant,
                               const std::vector<std::shared_ptr<Backend>>& backends,
                               const MeasureOptions& options = {});

// Chooses border and correction anew so that predictions fit `samples` best, as shares of them.
void fit_correction(LatencyTable& table);

}  // namespace limber
