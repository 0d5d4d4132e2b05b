// What this machine lets the process have, and how busy it is now.
#pragma once

#include <cstdint>
#include <string>

namespace limber {

struct HostInfo {
  std::string system;         // "Linux 6.1.0 x86_64"
  int online_cores = 1;       // that the machine has switched on
  double cpu_limit = 0;       // cores' worth of time that a control group allows; 0: no limit
  uint64_t memory_bytes = 0;  // of the machine; 0 here and below: unknown
  uint64_t free_bytes = 0;    // that could be had without swapping
  uint64_t memory_limit = 0;  // that a control group allows; 0: no limit
  double load = 0;            // processes that want to run, mean over the last minute
  std::string governor;       // how the clock of core 0 is governed; empty: unknown
};

// From the files that Linux keeps below `root`; what is missing there stays unknown.
HostInfo host_info(const std::string& root = "");

}  // namespace limber
