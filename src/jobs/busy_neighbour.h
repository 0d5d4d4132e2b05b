// Other work on the same machine, made on purpose: to see what a model does when it does not have the cores
// for itself.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/status.h"

namespace limber {

// A process for each core that this one may use, bound to it, which computes without end while it is awake.
// Processes of their own, since a server tells its own work from that of others (device/cpu_use.h). They end
// with this object, and with the thread that made it whatever happens to that. Use from one thread.
class BusyNeighbour {
 public:
  // Asleep at first. Nothing is left behind when it fails.
  static Result<BusyNeighbour> make();
  BusyNeighbour(BusyNeighbour&& other) noexcept : processes_(std::move(other.processes_)) {}
  BusyNeighbour& operator=(BusyNeighbour&&) = delete;
  ~BusyNeighbour();

  void wake();
  void sleep();
  size_t processes() const { return processes_.size(); }

 private:
  BusyNeighbour() = default;
  Status add(int core);
  void signal_all(int signal) const;

  std::vector<pid_t> processes_;
};

}  // namespace limber
