// One inference on files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "jobs/inputs.h"

namespace limber {

struct RunJobOptions : JobOptions {
  std::vector<std::string> inputs;  // "[NAME=]FILE": .npy files or images, see assign_files()
  ImageOptions image;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

struct RunResult {
  std::vector<NamedTensor> outputs;
  std::vector<std::string> rows;  // what the rows of a batch are called: their images, where there are any
  double seconds = 0;             // of the run alone
  std::shared_ptr<const Session> session;  // holds the outputs
};

class RunJob {
 public:
  // Loads the model. A run or checkpoint says how images are prepared, where the options do not.
  static Result<RunJob> open(const RunJobOptions& options, const JobControl& control = {});
  // Which file goes where. Fails for what does not fit the model's inputs.
  Status assign();
  // Reads the files, fits the model to their shapes, compiles and runs it. REQUIRES: assign()
  Result<RunResult> run(const JobControl& control = {});

  const std::vector<std::string>& classes() const { return classes_; }  // empty: not known

 private:
  RunJob() = default;
  RunJobOptions options_;
  Model model_;
  std::vector<InputFiles> files_;
  std::vector<std::string> classes_;
};

// kInvalidArgument naming the output when one holds values that are not numbers.
Status check_numbers(const std::vector<NamedTensor>& outputs);

}  // namespace limber
