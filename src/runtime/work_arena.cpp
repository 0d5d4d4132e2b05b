#include "runtime/work_arena.h"

#include <sys/mman.h>

#include <algorithm>

namespace limber {

Result<std::shared_ptr<WorkArena>> WorkArena::reserve(size_t bytes) {
  void* arena =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena == MAP_FAILED)
    return error(Code::kResourceExhausted, "cannot reserve {} bytes of address space", bytes);
  static_cast<void>(madvise(arena, bytes, MADV_HUGEPAGE));  // only an optimisation
  return std::shared_ptr<WorkArena>(new WorkArena(static_cast<std::byte*>(arena), bytes));
}

WorkArena::~WorkArena() { munmap(arena_, bytes_); }

void WorkArena::trim(size_t bytes) {
  constexpr size_t kPage =
      size_t{2} << 20;  // bytes: a huge page, which is given back as a whole or not at all
  const size_t keep = (bytes + kPage - 1) / kPage * kPage;
  if (keep < bytes_) static_cast<void>(madvise(arena_ + keep, bytes_ - keep, MADV_DONTNEED));
}

Result<std::shared_ptr<Buffer>> WorkArena::input(const std::string& name, size_t bytes) {
  std::shared_ptr<Buffer>& buffer = inputs_[name];
  if (buffer == nullptr || buffer->size() < bytes) {
    LIMBER_ASSIGN(buffer, Buffer::allocate(bytes));
    std::fill_n(buffer->data(), bytes, std::byte{0});
  }
  return buffer;
}

}  // namespace limber
