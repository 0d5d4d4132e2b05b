// Figures about what an elastic training chose.
#pragma once

#include "report/page.h"
#include "report/summary.h"

namespace limber {

// REQUIRES: the run has a selection.
void add_selection_figures(HtmlPage& page, const RunLog& run, const RunSummary& summary);

}  // namespace limber
