// The page about streams that were followed.
#pragma once

#include <string>
#include <vector>

#include "report/adapt_log.h"

namespace limber {

// HTML; the same for the same runs, byte for byte. REQUIRES: at least one run, each with a window
std::string adapt_page(const std::vector<AdaptLog>& runs);

}  // namespace limber
