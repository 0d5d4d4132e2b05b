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

  // After the first run: no allocation, no thread left spinning, no lock (but one at the end when the plan
  // updates parameters). When a parameter changed since the last run and not by it, what derives from it
  // is refreshed first (this allocates).
  Status run();

  // Runs `runs` times as it is, then `runs` times with a clock around every step.
  Result<Profile> profile(int runs);

 private:
  explicit Session(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  Status allocate();
  Status refresh();  // what derives from parameters that changed, and the kernels that read it
  Status fetch_leaves();
  std::vector<bool> stale_statics(const std::vector<uint64_t>& newest);
  Status make_static(const StaticStep& fixed, uint64_t version);
  void put(int slot, std::shared_ptr<Buffer> buffer);
  Status bind();
  void note_updates();
  std::byte* address(int slot) const;

  std::shared_ptr<const Plan> plan_;
  uint64_t version_ = 0;        // of all parameters, when they were last looked at
  std::vector<uint64_t> made_;  // by Plan::statics: the newest leaf it was made from
  std::vector<bool> kept_;      // by slot: a static that steps read, not just other statics
  std::vector<bool> moved_;     // by slot: its memory is new since the last bind()
  std::shared_ptr<Buffer> arena_;
  std::vector<std::shared_ptr<Buffer>> owned_;  // by slot: inputs, outputs, statics
  std::vector<std::unique_ptr<BoundKernel>> kernels_;
};

}  // namespace limber
