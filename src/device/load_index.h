// One number for how busy a machine is: (Wc·Uc + Wg·Ug + Wm·Um) / W, W being the sum of the weights.
#pragma once

#include <optional>
#include <string>

#include "device/sample.h"

namespace limber {

// A processor that is taken slows every inference by as much; memory slows nothing until it runs out. So a
// processor counts three times as much as memory.
struct LoadWeights {
  double cpu = 3, gpu = 3, memory = 1;

  std::string problem() const;  // a weight that is negative or no number, or all of them 0
};

enum class LoadOf : uint8_t {
  kEverybody,  // how full the machine is; where a control group's quota is fuller, that
  kOthers,     // what of the processor's load is not this process's own: what a serving loop follows
};

// 0..1. A part that the machine does not have or does not tell is left out, with its weight; empty when none
// is left. REQUIRES: weights.problem() is empty
std::optional<double> load_index(const DeviceSample& sample, LoadOf whose = LoadOf::kEverybody,
                                 const LoadWeights& weights = {});

}  // namespace limber
