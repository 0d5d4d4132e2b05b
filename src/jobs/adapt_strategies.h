// The strategies that can be asked for by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "adapt/strategy.h"

namespace limber {

struct StrategySettings {
  // Of a surrogate.
  double operations = 0.25;  // as a share of the master's
  bool write_back = true;    // the master learns what it learnt
  std::string folder;        // where that is kept, and found again; empty: nowhere
};
Status check(const StrategySettings& settings);

std::vector<std::string> adapt_strategies();
// Does it compare the world with images of the source?
bool needs_source_images(const std::string& strategy);
// `source`: images as the model wants them, f32[n,C,H,W], for one that needs them. kInvalidArgument for
// another name, and when the model has nothing that the strategy could change. The weights may change here
// already: to what was learnt before, where a folder holds something.
Result<std::unique_ptr<adapt::Strategy>> make_strategy(const std::string& name,
                                                       const adapt::AdaptedModel& model,
                                                       const StrategySettings& settings = {},
                                                       const Tensor& source = {});

}  // namespace limber
