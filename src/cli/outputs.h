// From the outputs of a session to files and text.
#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "tensor/tensor.h"

namespace limber {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// Writes DIR/NAME.npy for each (odd characters become '_') and DIR/outputs.json, which is returned: a
// list of {"name", "file", "dtype", "shape"}.
Result<Json> write_outputs(const std::string& folder, const std::vector<NamedTensor>& outputs);

struct ClassScore {
  int64_t index = 0;
  float score = 0;
  float probability = 0;  // softmax over the row; the score itself where a row is a distribution already
  std::string label;
};
// The best `k` classes of every row of the first output that is f32 [N, classes >= 2] (trailing ones
// ignored). Empty when there is none.
std::vector<std::vector<ClassScore>> top_classes(const std::vector<NamedTensor>& outputs, int k,
                                                 const std::vector<std::string>& labels);

// One label per line.
Result<std::vector<std::string>> read_labels(const std::string& path);

}  // namespace limber
