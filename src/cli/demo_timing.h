// Models timed in turns, so that whatever else the machine does hits all alike.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace limber {

struct TurnTimes {
  // Seconds of one run with one sample: the quickest of a turn's few runs, as what others do on the machine
  // only adds to them, and the median over the turns.
  std::vector<double> medians;
  int runs = 0;  // of each model
};

// Loads the files, compiles each for one sample, and runs them in turns for about so long.
// kResourceExhausted when stop_asked().
Result<TurnTimes> time_in_turns(const std::vector<std::string>& models, int threads, double seconds);

}  // namespace limber
