// What is in a model, what it costs, whether it can run, and where its time goes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "device/roofline.h"
#include "io/onnx.h"
#include "jobs/source.h"

namespace limber {

// --- what it costs --------------------------------------------------------------------------------------

struct OperatorCost {
  int64_t count = 0;
  double flops = 0;
};

struct ModelCost {
  std::map<std::string, OperatorCost> operators;
  // The rest, and the flops above, are known only when every dimension has a value.
  Status why_not;      // ok when they are
  std::string shapes;  // of the inputs
  double flops = 0;
  size_t arena_bytes = 0, io_bytes = 0;
  size_t steps = 0, reorders = 0;
};

// kUnsupported when no kernel runs one of its nodes.
Result<ModelCost> cost_of_model(const Model& model, const JobOptions& options,
                                const JobControl& control = {});

// --- can it run? ----------------------------------------------------------------------------------------

struct CheckResult {
  std::vector<OperatorUse> uses;
  Status runs;  // an operator can be known and still be used in a way that is not
};

// Fails when the file cannot be read as a model.
Result<CheckResult> check_model(const JobOptions& options, const JobControl& control = {});

// --- where does the time go? ----------------------------------------------------------------------------

struct ProfileJobOptions : JobOptions {
  bool train = false;  // a training step (SGD with momentum) instead of an inference
  int last = 0;        // above 0: a training step, of the last tensors only
  int runs = 20;       // to take the median of
  bool per_op = false;
  bool in_order = false;  // of execution, else the slowest first
};

// A step, or all steps of one operator.
struct ProfileRow {
  std::string op, name, impl, layouts;
  int64_t count = 1;
  double seconds = 0, flops = 0, bytes = 0;
};

struct ProfileResult {
  std::vector<ProfileRow> rows;
  double run_seconds = 0;  // of one run
  size_t steps = 0, reorders = 0, arena_bytes = 0;
  int threads = 0;
  Roofline roofline;

  double sum_seconds() const;  // of the rows
  // How close to the ceiling: 1 is as fast as the machine allows.
  double of_roofline(const ProfileRow& row) const;
};

Result<ProfileResult> run_profile(const ProfileJobOptions& options, const JobControl& control = {});

}  // namespace limber
