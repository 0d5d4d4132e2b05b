// A page about one evaluation: accuracy by class, what is taken for what, whether confidence can be trusted,
// the worst mistakes.
#pragma once

#include <string>

#include "record/evaluation.h"

namespace limber {

// REQUIRES: record.problem() is empty
std::string evaluation_page(const EvaluationRecord& record);

}  // namespace limber
