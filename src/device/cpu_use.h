// Who uses the processor: this process, or somebody else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/kernel_file.h"

namespace limber {

// Since the last reading, of the cores that this process may use.
struct CpuShares {
  double busy = 0;                    // by anybody
  std::optional<double> own, others;  // empty: the kernel does not tell what is our own
};

class CpuUse {
 public:
  // Which cores are ours is read once.
  explicit CpuUse(const std::string& root);
  // The kernel counts in ticks of 10 ms: readings that are closer give the shares of the one before.
  std::optional<CpuShares> read();
  const std::vector<int>& cores() const { return cores_; }  // empty: all

 private:
  struct Ticks {
    double all = 0, busy = 0, own = 0;
    int cores = 0;
    bool own_known = false;
  };
  std::optional<Ticks> ticks();

  std::vector<int> cores_;
  KernelFile stat_, self_;
  std::string buffer_;  // of /proc/stat
  std::optional<Ticks> last_;
  std::optional<CpuShares> shares_;
};

// "0-2,5" as 0, 1, 2, 5; empty when it cannot be read.
std::vector<int> parse_core_list(std::string_view text);

}  // namespace limber
