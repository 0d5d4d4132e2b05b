// The best plan of few applications: branch and bound.
#pragma once

#include <cstdint>

#include "sched/bound.h"

namespace limber::sched {

struct Branched {
  Plan plan;
  double value = 0;
  bool whole = false;  // nothing was left out for lack of steps
};
// Starts from what is known by prices.
Branched branch(const Problem& problem, const Priced& priced, int64_t steps);

}  // namespace limber::sched
