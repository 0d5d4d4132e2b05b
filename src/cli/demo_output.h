// The numbers of a demonstration, for programs.
#pragma once

#include "jobs/json.h"
#include "report/demo_page.h"

namespace limber {

Json demo_json(const DemoReport& report);

}  // namespace limber
