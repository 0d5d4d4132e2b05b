// What 'limber exits' found, for people and for programs.
#pragma once

#include "jobs/exits_job.h"

namespace limber {

void print_json(const ExitsOutcome& found);
// `latency`: above 0, names the best exit within so many seconds, for those who cannot wait for confidence.
void print_tables(const ExitsOutcome& found, double latency);

}  // namespace limber
