// Interposes malloc and its relatives in whatever it is compiled into (a program, or a library to be
// preloaded), and counts what every thread asks of the heap. One file per program includes it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heap {

inline constexpr size_t kSmall = 256;  // bytes

struct Counts {
  int64_t calls = 0;  // that allocated
  int64_t large = 0;  // of these, for more than kSmall bytes
  int64_t freed = 0;

  Counts operator-(const Counts& other) const {
    return {calls - other.calls, large - other.large, freed - other.freed};
  }
};

inline std::atomic<int64_t> calls{0}, large{0}, freed{0};

inline Counts counts() { return {calls.load(), large.load(), freed.load()}; }

inline void note(size_t bytes) {
  calls.fetch_add(1, std::memory_order_relaxed);
  if (bytes > kSmall) large.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace heap

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

__attribute__((visibility("default"))) void* malloc(size_t size) {
  heap::note(size);
  return __libc_malloc(size);
}
__attribute__((visibility("default"))) void* calloc(size_t count, size_t size) {
  heap::note(count * size);
  return __libc_calloc(count, size);
}
__attribute__((visibility("default"))) void* realloc(void* old, size_t size) {
  heap::note(size);
  if (old != nullptr) heap::freed.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(old, size);
}
__attribute__((visibility("default"))) void* memalign(size_t alignment, size_t size) {
  heap::note(size);
  return __libc_memalign(alignment, size);
}
__attribute__((visibility("default"))) void* aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}
__attribute__((visibility("default"))) int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = memalign(alignment, size);
  return *out == nullptr ? 12 : 0;
}
__attribute__((visibility("default"))) void free(void* block) {
  if (block != nullptr) heap::freed.fetch_add(1, std::memory_order_relaxed);
  __libc_free(block);
}
}
