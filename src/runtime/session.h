// A plan with memory: what runs.
#pragma once

#include <map>
#include <memory>
#include <string>
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

// Memory for sessions of which only one runs at a time, such as the plans of one training: their arenas
// are the same memory, and so are inputs of one name. Not thread-safe.
class SharedMemory {
 public:
  // Address space for arenas of up to `bytes`; pages become memory when a plan uses them.
  static Result<std::shared_ptr<SharedMemory>> reserve(size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  size_t bytes() const { return bytes_; }
  std::byte* arena() const { return arena_; }
  // Gives what lies above the first `bytes` of the arena back to the system.
  void trim(size_t bytes);
  Result<std::shared_ptr<Buffer>> input(const std::string& name, size_t bytes);

 private:
  SharedMemory(std::byte* arena, size_t bytes) : arena_(arena), bytes_(bytes) {}
  std::byte* arena_;
  size_t bytes_;
  std::map<std::string, std::shared_ptr<Buffer>> inputs_;
};

// One session per thread; many sessions may share a plan and its parameters. Inputs and outputs are
// memory of the session: fill the inputs, run, read the outputs before the next run.
class Session {
 public:
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const Plan> plan,
                                                 std::shared_ptr<SharedMemory> shared = nullptr);
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
  // The same; seconds[i] becomes the time of step i.
  Status run_timed(std::vector<double>& seconds);

  // Lets go of what derives from parameters until the next run or resume(), which make it again or share
  // what another session holds.
  void suspend();
  Status resume() { return plan_->params->version() == version_ ? Status() : refresh(); }

  // Runs `runs` times as it is, then `runs` times with a clock around every step.
  Result<Profile> profile(int runs);

 private:
  Session(std::shared_ptr<const Plan> plan, std::shared_ptr<SharedMemory> shared)
      : plan_(std::move(plan)), shared_(std::move(shared)) {}
  Status allocate();
  Status refresh();  // what derives from parameters that changed, and the kernels that read it
  Status fetch_leaves(const std::vector<bool>& wanted);
  std::vector<bool> stale_statics(const std::vector<uint64_t>& newest, std::vector<bool>& wanted);
  Status make_static(const StaticStep& fixed, uint64_t version);
  void put(int slot, std::shared_ptr<Buffer> buffer);
  Status release(size_t slot);
  size_t root_of(int slot) const;
  Status bind();
  void note_updates();
  void run_steps(std::vector<double>& seconds);
  std::byte* address(int slot) const;

  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<SharedMemory> shared_;
  uint64_t version_ = 0;                        // of all parameters, when they were last looked at
  std::vector<uint64_t> made_;                  // by Plan::statics: the newest leaf it was made from
  std::vector<bool> kept_;                      // by slot: a static that steps read, not just other statics
  std::vector<bool> moved_;                     // by slot: its memory is new since the last bind()
  std::shared_ptr<Buffer> arena_;               // unless the arena is shared
  std::vector<std::shared_ptr<Buffer>> owned_;  // by slot: inputs, outputs, statics
  std::vector<std::unique_ptr<BoundKernel>> kernels_;
};

}  // namespace limber
