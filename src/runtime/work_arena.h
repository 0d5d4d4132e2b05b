// Memory that several sessions use in turn.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "tensor/tensor.h"

namespace limber {

// Memory for sessions of which only one runs at a time, such as the plans of one training: their arenas
// are the same memory, and so are inputs of one name. Not thread-safe.
class WorkArena {
 public:
  // Address space for arenas of up to `bytes`; pages become memory when a plan uses them.
  static Result<std::shared_ptr<WorkArena>> reserve(size_t bytes);
  ~WorkArena();
  WorkArena(const WorkArena&) = delete;
  WorkArena& operator=(const WorkArena&) = delete;

  size_t bytes() const { return bytes_; }
  std::byte* arena() const { return arena_; }
  // Gives what lies above the first `bytes` of the arena back to the system.
  void trim(size_t bytes);
  Result<std::shared_ptr<Buffer>> input(const std::string& name, size_t bytes);

 private:
  WorkArena(std::byte* arena, size_t bytes) : arena_(arena), bytes_(bytes) {}
  std::byte* arena_;
  size_t bytes_;
  std::map<std::string, std::shared_ptr<Buffer>> inputs_;
};

}  // namespace limber
