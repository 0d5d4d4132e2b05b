// A small network out of a master.
#pragma once

#include <map>

#include "adapt/surrogate/plain_master.h"
#include "passes/slice_channels.h"

namespace limber::adapt {

struct CutNetwork {
  AdaptedModel model;                 // weights of its own, called as in the master
  std::vector<SlicedTensor> tensors;  // where in the master's those lie that shrank
  // By name, the numbers that the master's elements along axis 0 were multiplied by: gates, which are
  // constants here, are part of the scale and shift of a normalisation, or of the filters where there is
  // none.
  std::map<std::string, std::vector<float>> factors;

  const SlicedTensor* find(const std::string& name) const;  // null: it did not shrink
};

// Computes what the plain master does with the units that are not `kept` masked and every filter multiplied
// by its gate. Needs the memory of the small network and of the master's largest tensor.
// REQUIRES: `master` has the weights of the graph that `plain` was opened from; gates of all layers
Result<CutNetwork> cut_network(const PlainMaster& plain, const AdaptedModel& master,
                               std::span<const std::vector<int64_t>> kept, const FilterValues& gates);

}  // namespace limber::adapt
