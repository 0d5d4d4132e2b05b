// A goal, from what was made for its parent to what is made for it.
#pragma once

#include <functional>

#include "porting/executor.h"

namespace limber {

struct PortGoalOptions {
  // Seconds that the network takes on this machine; asked of goals for this machine.
  std::function<Result<double>(const Model& model)> time_here;
  // After each step: by how much the worst constraint is above its limit, 0 at the end.
  std::function<void(double excess, int steps)> progress;
  int max_steps = 100;
};

struct PortedGoal {
  Ported ported;
  std::string refused;  // by the limit that cannot be reached, and what can; then nothing was made
  int steps = 0;
  double way = 0;         // how far the worst constraint had to shrink, in natural logarithms
  double measured_s = 0;  // of one that is timed here, else 0
};

// What cannot be reached is no failure: see `refused`.
Result<PortedGoal> port_goal(Executor& executor, const Goal& goal, const Ported& parent,
                             const PortGoalOptions& options);

}  // namespace limber
