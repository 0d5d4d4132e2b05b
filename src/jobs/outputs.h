// From the outputs of a session to files and text.
#pragma once

#include <string>
#include <vector>

#include "jobs/json.h"
#include "jobs/run_job.h"

namespace limber {

// Writes DIR/NAME.npy for each (odd characters become '_') and DIR/outputs.json, which is returned: a
// list of {"name", "file", "dtype", "shape"}.
Result<Json> write_outputs(const std::string& folder, const std::vector<NamedTensor>& outputs);

// A list of {"name", "dtype", "shape", "values"}: numbers in row-major order, null where one is not finite.
// Outputs of more than kMostValues numbers have "left_out", which says so, instead of values.
inline constexpr size_t kMostValues = 10'000;
Json describe_outputs(const std::vector<NamedTensor>& outputs);

}  // namespace limber
