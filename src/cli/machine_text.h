// What a machine is, in words.
#pragma once

#include <string>
#include <vector>

#include "device/caches.h"
#include "device/host.h"

namespace limber {

std::string limit_text(const HostInfo& host);                   // "1.5 cores' worth of time, 2 GiB", "none"
std::string cache_text(const std::vector<CacheLevel>& caches);  // "L1 32 KiB, L2 1 MiB", "unknown"

}  // namespace limber
