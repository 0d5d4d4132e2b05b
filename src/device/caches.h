// The caches between a core and memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace limber {

struct CacheLevel {
  int level = 0;
  int64_t bytes = 0;
};

// Those of core 0 that hold data, the innermost first; empty when the kernel below `root` does not tell.
std::vector<CacheLevel> cpu_caches(const std::string& root = "");

}  // namespace limber
