// Which parameters are trained, by patterns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace limber {

// '*' stands for any text, '?' for one character; everything else for itself, and the whole name must match.
bool matches(std::string_view pattern, std::string_view name);

// Those of `names` that match one of `train` (all, when it is empty) and none of `freeze`. Fails for a
// pattern that matches nothing and when nothing is left.
Result<std::vector<std::string>> select_parameters(const std::vector<std::string>& names,
                                                   const std::vector<std::string>& train,
                                                   const std::vector<std::string>& freeze);

}  // namespace limber
