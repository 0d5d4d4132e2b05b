// The strategies that can be asked for by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "adapt/strategy.h"

namespace limber {

std::vector<std::string> adapt_strategies();
// kInvalidArgument for another name, and when the model has nothing that the strategy could change.
Result<std::unique_ptr<adapt::Strategy>> make_strategy(const std::string& name,
                                                       const adapt::AdaptedModel& model);

}  // namespace limber
