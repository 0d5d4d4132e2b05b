#include "base/memory.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace limber {

void page_out(const void* data, size_t bytes) {
#ifdef MADV_PAGEOUT
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGE_SIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(data) + bytes) / page * page;
  if (begin < end) static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_PAGEOUT));
#else
  static_cast<void>(data);
  static_cast<void>(bytes);
#endif
}

void trim_heap() {
#ifdef __GLIBC__
  static_cast<void>(malloc_trim(0));
#endif
}

ProcessMemory process_memory() {
  ProcessMemory memory;
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    size_t kib = 0;
    if ((key == "VmRSS:" || key == "VmHWM:") && status >> kib)
      (key == "VmRSS:" ? memory.resident : memory.peak) = kib << 10;
  }
  return memory;
}

}  // namespace limber
