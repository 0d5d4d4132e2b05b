// Which application uses which size, who retrains and when, with how many threads: so that the mean worth
// over the window is highest.
//
// Retraining one after another is a schedule like any other. Where twice the threads are twice as fast it is
// never worse than side by side, whatever the shares; where they are less, side by side can be better.
#pragma once

#include <cstdint>
#include <span>

#include "sched/schedule.h"

namespace limber::sched {

struct OptimiseOptions {
  // Applications up to which the optimum is looked for; more only get close to it.
  size_t exact_up_to = 6;
  int64_t steps = 2'000'000;  // at most, of the search for the optimum: beyond, the best found so far
  int64_t tries = 30'000;     // of evolution, where the optimum is not looked for
  uint64_t seed = 0;
};

// The same for the same input. kInvalidArgument as check(), kResourceExhausted when the machine cannot even
// answer.
Result<Schedule> optimise(std::span<const Application> applications, const Window& window,
                          const OptimiseOptions& options = {});

}  // namespace limber::sched
