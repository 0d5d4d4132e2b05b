#include "cli/machine_text.h"

#include <fmt/format.h>

#include "base/show.h"

namespace limber {

std::string limit_text(const HostInfo& host) {
  std::string text;
  if (host.cpu_limit > 0) text += fmt::format("{:.2g} cores' worth of time", host.cpu_limit);
  if (host.memory_limit > 0)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", show_bytes(static_cast<double>(host.memory_limit)));
  return text.empty() ? "none" : text;
}

std::string cache_text(const std::vector<CacheLevel>& caches) {
  std::string text;
  for (const CacheLevel& cache : caches)
    text += fmt::format("{}L{} {}", text.empty() ? "" : ", ", cache.level,
                        show_bytes(static_cast<double>(cache.bytes)));
  return text.empty() ? "unknown" : text;
}

}  // namespace limber
