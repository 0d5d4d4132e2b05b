// Seeded random numbers that are the same on every platform (std distributions are not).
#pragma once

#include <cmath>
#include <cstdint>

namespace limber {

// xoshiro256**-quality is not needed here: splitmix64 passes what we ask of it and has one word of
// state, which makes it trivial to save and restore.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // In [0, n). REQUIRES: n > 0
  uint64_t below(uint64_t n) { return next() % n; }
  double normal() {
    const double u = 1.0 - uniform();
    return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * uniform());
  }

  uint64_t state() const { return state_; }

 private:
  uint64_t state_;
};

}  // namespace limber
