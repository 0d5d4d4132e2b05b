// Which tensors are worth training within a budget.
#pragma once

#include <limits>

#include "elastic/step_costs.h"

namespace limber {

struct SelectionRequest {
  std::vector<double> importance;                               // by tensor
  double seconds = std::numeric_limits<double>::infinity();     // for a step
  double kept_bytes = std::numeric_limits<double>::infinity();  // see StepCosts::kept_bytes
  TensorMask always, never;                                     // by tensor; empty: none
};

struct Selection {
  TensorMask mask;  // never empty
  double seconds = 0, importance = 0;
  double share = 1;    // of the time of training everything
  bool within = true;  // false: even the cheapest allowed choice, which this is, exceeds the budget
};

// A given choice.
Selection describe(const StepCosts& costs, const SelectionRequest& request, const TensorMask& mask);

// The time of a choice is that of the graph it leaves, not of a chain: the exact optimum for the chain that
// is nearest to the network is checked against the graph, and solved again with less where it needs more.
Selection select_tensors(const StepCosts& costs, const SelectionRequest& request);

// The choice with the most importance for the time of its steps, the full set among the candidates. No
// budget: `seconds` of the request is not read. On a chain, for a given price of a second, what belongs to
// the best set down to a tensor is decided for each tensor alone; the price is raised until the best set just
// pays.
Selection select_by_rate(const StepCosts& costs, const SelectionRequest& request);

// Tensors that fit into a budget at all, trained alone.
TensorMask reachable_tensors(const StepCosts& costs, double seconds);

}  // namespace limber
