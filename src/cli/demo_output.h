// What a demonstration leaves behind.
#pragma once

#include "cli/json.h"
#include "report/demo_page.h"

namespace limber {

Json demo_json(const DemoReport& report);
// report.html and demo.svg in the report's folder.
Status write_demo(const DemoReport& report);

}  // namespace limber
