#include "device/caches.h"

#include <algorithm>

#include "device/kernel_file.h"

namespace limber {

std::vector<CacheLevel> cpu_caches(const std::string& root) {
  std::vector<CacheLevel> caches;
  for (const std::string& cache : kernel_entries(root + "/sys/devices/system/cpu/cpu0/cache", "index")) {
    if (kernel_text(cache + "/type").starts_with("Instruction")) continue;
    const std::string text = kernel_text(cache + "/size");  // "32K", "32M"
    std::string_view rest = text;
    const auto size = take_number(rest);
    const auto level = KernelFile(cache + "/level").number();
    if (!size || *size <= 0 || *size > 1e9 || !level || *level < 1 || *level > 9) continue;
    const int64_t unit = rest.starts_with('M') ? 1 << 20 : rest.starts_with('K') ? 1 << 10 : 1;
    caches.push_back({static_cast<int>(*level), static_cast<int64_t>(*size) * unit});
  }
  std::sort(caches.begin(), caches.end(),
            [](const CacheLevel& a, const CacheLevel& b) { return a.level < b.level; });
  return caches;
}

}  // namespace limber
