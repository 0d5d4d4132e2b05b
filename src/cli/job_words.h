// What would be typed to have a job done.
#pragma once

#include <string>

#include "jobs/demo_job.h"

namespace limber {

// "limber train base --data ... -o full": options that a demonstration sets; defaults are left out.
std::string command_line(const DemoCall& call);

}  // namespace limber
