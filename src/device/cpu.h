// What this machine is.
#pragma once

#include <string>
#include <vector>

namespace limber {

struct CpuInfo {
  std::string name;                   // "AMD EPYC 7B13", or the architecture when the system does not say
  int cores = 1;                      // that this process may use
  std::vector<std::string> features;  // vector extensions that matter for kernels, widest last
};

CpuInfo cpu_info();

}  // namespace limber
