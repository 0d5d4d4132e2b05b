// Marks the calling thread as running a plan. Limber itself allocates nothing there; oneDNN builds small
// argument tables on every call, and executables that link limber_run_heap serve those from a
// per-thread pool instead of the heap (base/heap/operator_new.cpp).
#pragma once

namespace limber {

class RunScope {
 public:
  RunScope();
  ~RunScope();
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;
};

bool running_plan();

}  // namespace limber
