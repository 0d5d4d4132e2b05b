// The choice of tensors as a knapsack along a chain, solved exactly.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace limber {

// Tensors are ordered by distance from the loss, the nearest first. Times are whole numbers of any unit.
struct ChainTensor {
  int64_t reach = 0;  // bringing the error gradient from the loss to this tensor
  int64_t own = 0;    // its own gradient and update
  double importance = 0;
  double depth_penalty = 0;  // taken off the total when this is the tensor farthest from the loss
  bool forced = false;       // must be part of the choice
};

struct ChainChoice {
  std::vector<bool> chosen;
  double value = 0;
  int64_t time = 0;
  bool feasible = true;  // false: what is forced does not fit, and nothing is chosen
};

// Maximises the importance (less the penalty) of a set whose time, the sum of `own` over the set plus
// `reach` of the one farthest from the loss, is at most `budget`. Exact; O(N * budget) time and bytes.
ChainChoice choose_on_chain(std::span<const ChainTensor> tensors, int64_t budget);

}  // namespace limber
