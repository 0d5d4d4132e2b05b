// operator new and delete for Limber's executables. While a plan runs, small blocks come from a pool of
// the running thread: no heap call, no lock, constant time. Everything else goes to malloc.
//
// The pools are slices of one static region, so whether a pointer is ours is a range check. A thread
// takes a slice the first time it needs one and gives it back when it ends; when none is left, malloc
// serves. A block freed by another thread than the one that took it is not reused until its slice is.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "base/run_scope.h"

namespace {

constexpr size_t kSlices = 32, kSliceBytes = size_t{32} << 10;
constexpr size_t kClassBytes = 64, kClasses = 16;  // blocks of 64, 128, ... 1024 bytes

alignas(64) char region[kSlices * kSliceBytes];
std::atomic<uint32_t> taken{0};  // a bit per slice

struct Block {
  Block* next;
};

class Pool {
 public:
  ~Pool() {
    if (slice_ >= 0) taken.fetch_and(~(1u << slice_), std::memory_order_release);
    slice_ = kClosed;
  }

  void* take(size_t bytes) {
    if (slice_ == kUnopened) open();
    if (slice_ < 0) return nullptr;
    const size_t index = (bytes + kClassBytes - 1) / kClassBytes - 1;
    if (Block* block = free_[index]) {
      free_[index] = block->next;
      return block;
    }
    const size_t size = (index + 1) * kClassBytes;
    // One class unit in front of the block holds its class and keeps blocks aligned.
    if (used_ + size + kClassBytes > kSliceBytes) return nullptr;
    char* header = base() + used_;
    used_ += size + kClassBytes;
    *reinterpret_cast<size_t*>(header) = index;
    return header + kClassBytes;
  }

  void give(void* p) {
    const auto offset = static_cast<size_t>(static_cast<char*>(p) - region);
    if (slice_ < 0 || offset / kSliceBytes != static_cast<size_t>(slice_)) return;
    const size_t index = *reinterpret_cast<size_t*>(static_cast<char*>(p) - kClassBytes);
    auto* block = static_cast<Block*>(p);
    block->next = free_[index];
    free_[index] = block;
  }

 private:
  static constexpr int kUnopened = -1, kClosed = -2;

  char* base() const { return region + static_cast<size_t>(slice_) * kSliceBytes; }

  void open() {
    uint32_t mask = taken.load(std::memory_order_relaxed);
    while (mask != UINT32_MAX) {
      const int free = __builtin_ctz(~mask);
      if (taken.compare_exchange_weak(mask, mask | (1u << free), std::memory_order_acquire)) {
        slice_ = free;
        return;
      }
    }
  }

  int slice_ = kUnopened;
  size_t used_ = 0;
  Block* free_[kClasses] = {};
};

thread_local Pool pool;

bool pooled(const void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p), start = reinterpret_cast<uintptr_t>(region);
  return address >= start && address < start + sizeof(region);
}

void* allocate(size_t bytes) {
  if (bytes > 0 && bytes <= kClassBytes * kClasses && limber::running_plan()) {
    if (void* p = pool.take(bytes)) return p;
  }
  return std::malloc(bytes > 0 ? bytes : 1);
}

void release(void* p) {
  if (p == nullptr) return;
  if (pooled(p)) return pool.give(p);
  std::free(p);
}

}  // namespace

void* operator new(size_t bytes) {
  if (void* p = allocate(bytes)) return p;
  throw std::bad_alloc();
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, size_t) noexcept { release(p); }
void operator delete[](void* p, size_t) noexcept { release(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { release(p); }
