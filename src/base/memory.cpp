#include "base/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

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

}  // namespace limber
