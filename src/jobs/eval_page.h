// What an evaluation found, as a page.
#pragma once

#include <string>

#include "jobs/eval_job.h"

namespace limber {

// One HTML file that needs nothing else. The images of the worst mistakes are read again, to be shown; one
// that cannot be read is left out.
Status write_eval_page(const EvalResult& result, const std::string& path);

}  // namespace limber
