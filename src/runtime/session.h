// A plan with memory: what runs.
#pragma once

#include <memory>
#include <vector>

#include "runtime/plan.h"

namespace limber {

struct StepTime {
  const Step* step;
  double median_s, min_s;
};
struct Profile {
  std::vector<StepTime> steps;
  double total_s = 0;  // median of whole runs, without per-step timing
};

// One session per thread; many sessions may share a plan and its parameters. Inputs and outputs are
// memory of the session: fill the inputs, run, read the outputs before the next run.
class Session {
 public:
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const Plan> plan);
  ~Session();

  const Plan& plan() const { return *plan_; }
  const std::shared_ptr<const Plan>& shared_plan() const { return plan_; }
  // Views on the session's memory, in graph order. A detection output has only its valid rows.
  Tensor input(size_t index) const;
  Tensor output(size_t index) const;

  // After the first run: no allocation, no lock, no thread left spinning. When a parameter was
  // replaced since the last run, what derives from it is refreshed first (this allocates).
  Status run();

  // Runs `runs` times as it is, then `runs` times with a clock around every step.
  Result<Profile> profile(int runs);

 private:
  explicit Session(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  Status allocate();
  Status refresh();  // statics for the current parameter version, then bind
  Status make_statics();
  Status make_static(const StaticStep& fixed);
  Status drop_unused_statics();
  Status bind();
  std::byte* address(int slot) const;

  std::shared_ptr<const Plan> plan_;
  uint64_t version_ = 0;
  std::shared_ptr<Buffer> arena_;
  std::vector<std::shared_ptr<Buffer>> owned_;  // by slot: inputs, outputs, statics
  std::vector<std::unique_ptr<BoundKernel>> kernels_;
};

}  // namespace limber
