// What an evaluation found, as a record and as a page.
#pragma once

#include <string>

#include "jobs/eval_job.h"
#include "record/evaluation.h"

namespace limber {

// Without pictures.
EvaluationRecord record_of(const EvalJobOptions& options, const EvalResult& result);

// One HTML file that needs nothing else. The images of the worst mistakes are read again, to be shown; one
// that cannot be read is left out.
Status write_eval_page(const EvalJobOptions& options, const EvalResult& result, const std::string& path);

}  // namespace limber
