// What a master says about its filters on a window of images.
#pragma once

#include <vector>

#include "adapt/surrogate/plain_master.h"

namespace limber::adapt {

struct GateReading {
  // By layer of PlainMaster::layers, by image, by filter; a layer without a gate is empty.
  std::vector<std::vector<std::vector<double>>> gates;
  std::vector<std::vector<double>> probabilities;  // by image, by class
};

// One pass of the master, gates and all, or of a network cut from it, over the images by their own
// statistics: those of the source say little of a domain that is not the source. kInternal when an answer is
// not a number. REQUIRES: check_images()
Result<GateReading> read_gates(const AdaptedModel& model, const PlainMaster& plain, const Tensor& images);

// The mean over images; of layers without a gate 1.
FilterValues mean_gates(const GateReading& reading, const PlainMaster& plain);
// Those of the image whose prediction has the highest entropy, the domain's hardest.
FilterValues hardest_gates(const GateReading& reading, const PlainMaster& plain);
// Each layer's values as shares of their mean, so that layers count alike; summed by unit.
UnitRelevance gate_relevance(const PlainMaster& plain, const FilterValues& gates);

// How far each unit's absence would move the model's own answers: the mean over the first `most` images of
// the size of the derivative, of the cross entropy with the model's own best guess, by a factor on all
// filters of the unit. Two forward passes and one backward; changes nothing. kInternal when a gradient is not
// a number. REQUIRES: check_images(); most > 0
Result<UnitRelevance> sensitivity_relevance(const AdaptedModel& master, const PlainMaster& plain,
                                            const Tensor& images, int64_t most);

// By the size of the weights: what does not look at images at all.
Result<UnitRelevance> magnitude_relevance(const PlainMaster& plain, const Parameters& weights);

}  // namespace limber::adapt
