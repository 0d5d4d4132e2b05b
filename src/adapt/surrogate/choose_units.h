// Which units a surrogate keeps.
#pragma once

#include <vector>

#include "adapt/master/relevance.h"
#include "adapt/surrogate/operations.h"

namespace limber::adapt {

enum class UnitChoice : uint8_t {
  kEven,    // the same share of every group, its most relevant units
  kGlobal,  // of all groups together: what has the least relevance for its operations goes first
};

struct UnitBudget {
  double operations = 0.25;  // at most this share of the whole model's
  UnitChoice choice = UnitChoice::kEven;
  // Units are kept by so many: convolution kernels compute whole blocks of channels.
  int64_t block = 1;
  // The least share of any group that kGlobal keeps: a layer that is nearly gone is one that nothing passes.
  double least = 0.25;
};

// By group, ascending: what slice_channels() takes. At least one unit, or one block, of each group is kept,
// even where that is more than the budget. Of equal ones the first are kept.
// REQUIRES: relevance of every unit, none negative; 0 < operations <= 1, block > 0, 0 <= least <= 1
std::vector<std::vector<int64_t>> choose_units(const OperationCount& count, const UnitRelevance& relevance,
                                               const UnitBudget& budget);

}  // namespace limber::adapt
