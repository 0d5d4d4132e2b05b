// What the control groups that this process lies in allow, and how much of it is used. Both versions.
#pragma once

#include <optional>
#include <string>

#include "device/kernel_file.h"

namespace limber {

// Empty: no limit, or nothing is told. Shares are of the time since the last reading.
struct GroupUse {
  std::optional<double> cpu_limit;  // cores' worth of time
  std::optional<double> quota_used;
  std::optional<double> throttled;
  std::optional<double> memory_limit, memory_used;  // bytes; used: without file caches that can be dropped
};

class ControlGroup {
 public:
  // A group is limited by all that it lies in: the tightest of them, as it is now, is watched from then on. A
  // limit that is changed later in that one is seen.
  explicit ControlGroup(const std::string& root);
  GroupUse read(double time_s);

 private:
  std::optional<double> cpu_limit() const;
  void read_cpu(double time_s, GroupUse& use);
  void read_memory(GroupUse& use) const;

  KernelFile cpu_max_, cpu_stat_;        // the second version
  KernelFile quota_, period_, cpuacct_;  // the first; its cpu.stat is in cpu_stat_
  KernelFile memory_max_, memory_now_, memory_stat_;
  CounterDelta time_, used_s_, periods_, throttled_;
};

}  // namespace limber
