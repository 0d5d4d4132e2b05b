// From the outputs of a classifier to classes.
#pragma once

#include <string>
#include <vector>

#include "jobs/run_job.h"

namespace limber {

struct ClassScore {
  int64_t index = 0;
  float score = 0;
  float probability = 0;  // softmax over the row; the score itself where a row is a distribution already
  std::string label;
};

// Of a row of scores, the best `k`, of equal ones the first.
std::vector<ClassScore> top_of_row(std::span<const float> row, int k, const std::vector<std::string>& labels);
// The best `k` classes of every row of the first output that is f32 [N, classes >= 2] (trailing ones
// ignored). Empty when there is none.
std::vector<std::vector<ClassScore>> top_classes(const std::vector<NamedTensor>& outputs, int k,
                                                 const std::vector<std::string>& labels);

// One label per line.
Result<std::vector<std::string>> read_labels(const std::string& path);

}  // namespace limber
