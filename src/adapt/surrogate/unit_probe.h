// What a master says about its filters on a window of images.
#pragma once

#include <memory>

#include "adapt/by_size.h"
#include "adapt/surrogate/plain_master.h"
#include "runtime/session.h"

namespace limber::adapt {

struct GateReading {
  // By layer, by image, by filter; a layer without a gate is empty.
  std::vector<std::vector<std::vector<double>>> gates;
  std::vector<double> entropy;  // of the prediction, by image
};

// Runs the master, gates and all, over the images by their own statistics: those of the source say little of
// a domain that is not the source.
class GateProbe {
 public:
  static Result<std::unique_ptr<GateProbe>> create(const AdaptedModel& master, const PlainMaster& plain);
  // kInternal when an answer is not a number. REQUIRES: check_images()
  Result<GateReading> read(const Tensor& images);
  bool has_gates() const { return has_gates_; }

 private:
  explicit GateProbe(const AdaptedModel& master) : model_(master) {}
  Result<std::unique_ptr<Session>> compile_pass(int64_t batch) const;

  AdaptedModel model_;
  std::vector<std::string> gate_of_;  // by layer: the bias of its gate; empty where there is none
  bool has_gates_ = false;
  BySize<Session> sessions_;
};

// The mean over images; of layers without a gate 1.
FilterValues mean_gates(const GateReading& reading, const PlainMaster& plain);
// Those of the image of highest entropy, the domain's hardest.
FilterValues hardest_gates(const GateReading& reading, const PlainMaster& plain);
// Each layer's values as shares of their mean, so that layers count alike; summed by unit.
UnitRelevance gate_relevance(const PlainMaster& plain, const FilterValues& gates);

// How far each unit's absence would move the model's own answers: the mean over images of the size of the
// derivative of the cross entropy with its own best guess, by a factor on all filters of the unit. Two forward
// passes and one backward, over the first `images` of a window.
class SensitivityProbe {
 public:
  static Result<std::unique_ptr<SensitivityProbe>> create(const AdaptedModel& master,
                                                          const PlainMaster& plain, int64_t images);
  // kInternal when a gradient is not a number. REQUIRES: check_images()
  Result<UnitRelevance> read(const Tensor& images);

 private:
  struct Pass {
    std::shared_ptr<Parameters> weights;  // the master's, and the factors
    std::unique_ptr<Session> session;
  };
  SensitivityProbe(const AdaptedModel& master, const PlainMaster& plain, int64_t images)
      : model_(master), plain_(plain), images_(images) {}
  Result<std::unique_ptr<Pass>> compile_pass(int64_t batch) const;
  Status take_weights(Parameters& to) const;

  AdaptedModel model_;
  PlainMaster plain_;
  int64_t images_;
  BySize<Pass> passes_;
};

// By the size of the weights: what does not look at images at all.
Result<UnitRelevance> magnitude_relevance(const PlainMaster& plain, const Parameters& weights);

}  // namespace limber::adapt
