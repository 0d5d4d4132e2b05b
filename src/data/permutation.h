// A shuffled order that needs no memory: where each number goes is computed.
#pragma once

#include <bit>
#include <cstdint>

#include "base/random.h"

namespace limber {

// A Feistel network over the next power of four, walked until the number is below n.
class Permutation {
 public:
  // REQUIRES: 0 < n <= 2^62
  Permutation(uint64_t n, uint64_t seed)
      : n_(n), half_((static_cast<unsigned>(std::bit_width(n - 1)) + 1) / 2) {
    Random random(seed);
    for (uint64_t& key : keys_) key = random.next();
  }
  // Every number below n once. REQUIRES: i < n
  uint64_t at(uint64_t i) const {
    do {
      i = shuffled(i);
    } while (i >= n_);
    return i;
  }

 private:
  uint64_t shuffled(uint64_t i) const {
    const uint64_t mask = (uint64_t{1} << half_) - 1;
    uint64_t left = i >> half_, right = i & mask;
    for (const uint64_t key : keys_) {
      const uint64_t next = left ^ (Random(key ^ right * 0xd6e8feb86659fd93ULL).next() >> 32 & mask);
      left = right;
      right = next;
    }
    return left << half_ | right;
  }

  uint64_t n_;
  unsigned half_;  // bits
  uint64_t keys_[6];
};

}  // namespace limber
