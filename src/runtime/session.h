// A plan with memory: what runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/plan.h"
#include "runtime/work_arena.h"

namespace limber {

struct StepTime {
  const Step* step;
  double median_s, min_s;
};
struct Profile {
  std::vector<StepTime> steps;
  double total_s = 0;  // median of whole runs, without per-step timing
};

// One session per thread; many sessions may share a plan and its weights, packed ones too. Inputs and outputs
// are memory of the session: fill the inputs, run, read the outputs before the next run.
//
// A session over a snapshot (see ir/parameters.h) runs with exactly its weights, whoever trains meanwhile,
// and keeps it alive until use() moves it on. A session over a working set takes turns with whatever updates
// it.
class Session {
 public:
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const Plan> plan,
                                                 std::shared_ptr<WorkArena> shared = nullptr);
  // For a plan that was compiled over a snapshot.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const Plan> plan,
                                                 const WeightSnapshot& weights,
                                                 std::shared_ptr<WorkArena> shared = nullptr);
  ~Session();

  const Plan& plan() const { return *plan_; }
  const std::shared_ptr<const Plan>& shared_plan() const { return plan_; }
  // Views on the session's memory, in graph order. A detection output has only its valid rows; one that
  // updates a parameter is the parameter.
  Tensor input(size_t index) const;
  Tensor output(size_t index) const;

  // After the first run: no lock (but one at the end when the plan updates parameters), no thread left
  // spinning, and no allocation of ours. oneDNN takes about eight blocks of at most 256 bytes from the heap
  // whenever one of its primitives is called (convolutions, matrix products, pooling, reorders), its gemm:jit
  // implementations a work buffer too, and frees them before it returns: tests/runtime/alloc. When a
  // parameter changed since the last run and not by it, what derives from it is refreshed first (this
  // allocates).
  Status run();

  // From the next run on, the weights of this snapshot. Does nothing when it has them already; otherwise
  // makes, or takes from sessions that did, what derives from tensors that changed. When a tensor is missing
  // or has another type, the session keeps the weights it has; when memory runs out, the next run tries
  // again. REQUIRES: the plan was compiled over a snapshot
  Status use(const WeightSnapshot& snapshot);
  // The same with what was published last: one atomic load when that is what the session has.
  Status use(const PublishedWeights& published) {
    return published.version() == snapshot_version_ ? Status() : use(published.current());
  }
  uint64_t snapshot_version() const { return snapshot_version_; }  // of what it uses; 0: a working set
  // The same; seconds[i] becomes the time of step i.
  Status run_timed(std::vector<double>& seconds);

  // Lets go of what derives from parameters until the next run or resume(), which make it again or share
  // what another session holds.
  void suspend();
  Status resume() { return weights_->state() == state_ ? Status() : refresh(); }

  // Runs `runs` times as it is, then `runs` times with a clock around every step. REQUIRES: runs > 0
  Result<Profile> profile(int runs);

 private:
  Session(std::shared_ptr<const Plan> plan, std::shared_ptr<WorkArena> shared)
      : plan_(std::move(plan)), shared_(std::move(shared)), weights_(plan_->params) {}
  Status allocate();
  Status refresh();  // what derives from parameters that changed, and the kernels that read it
  Status refresh_statics();
  std::vector<uint64_t> current_stamps() const;
  Status fetch_leaves(const std::vector<bool>& wanted);
  Result<std::shared_ptr<Buffer>> pack_parameter(const Slot& slot);
  std::vector<bool> stale_statics(const std::vector<uint64_t>& stamps, std::vector<bool>& wanted);
  std::shared_ptr<Buffer> find_shared(const StaticStep& fixed, uint64_t stamp) const;
  Status make_static(const StaticStep& fixed, uint64_t stamp);
  void release(size_t slot);
  size_t root_of(int slot) const;
  Status bind();
  void note_updates();
  void run_steps(std::vector<double>& seconds);
  std::byte* address(int slot) const;

  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<WorkArena> shared_;
  std::shared_ptr<const Parameters> weights_;
  uint64_t snapshot_version_ = 0;
  uint64_t state_ = 0;                          // of weights_ when they were last looked at; 0: never
  std::vector<uint64_t> made_;                  // by Plan::statics: the stamp of what it was made from
  std::vector<bool> kept_;                      // by slot: a static that steps read, not just other statics
  std::vector<const std::byte*> bound_;         // by slot: its memory at the last bind()
  std::shared_ptr<Buffer> arena_;               // unless the arena is shared
  std::vector<std::shared_ptr<Buffer>> owned_;  // by slot: inputs, outputs, statics
  std::vector<std::unique_ptr<BoundKernel>> kernels_;
};

}  // namespace limber
