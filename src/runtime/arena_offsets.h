// Gives every buffer that lives for a while an offset in one arena.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace limber {

// Alive from step `first` to step `last`, both included.
struct Lifetime {
  size_t bytes = 0;
  int first = 0, last = 0;
};

struct ArenaOffsets {
  std::vector<size_t> offsets;  // one per lifetime, multiples of kArenaAlignment
  size_t bytes = 0;             // what the arena must hold
  size_t live_bytes = 0;        // the largest live set: no plan can need less
};

inline constexpr size_t kArenaAlignment = 64;  // bytes: a cache line, and the widest vector

// Two lifetimes that overlap never share a byte. Deterministic. Tries several orders and, while the
// result is above the largest live set, a bounded number of improvements.
ArenaOffsets place_in_arena(std::span<const Lifetime> lifetimes);

}  // namespace limber
