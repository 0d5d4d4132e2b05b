// The page about trainings.
#pragma once

#include <string>
#include <vector>

#include "report/run_log.h"

namespace limber {

// HTML; the same for the same runs, byte for byte. REQUIRES: at least one run.
std::string training_page(const std::vector<RunLog>& runs);

}  // namespace limber
