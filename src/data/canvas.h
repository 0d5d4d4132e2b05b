// Float RGB pixels to draw on.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "tensor/tensor.h"

namespace limber {

using Colour = std::array<float, 3>;  // 0..255

struct Canvas {
  int height;
  int width;
  std::vector<Colour> pixels;  // row-major

  Canvas(int h, int w) : height(h), width(w), pixels(static_cast<size_t>(h) * static_cast<size_t>(w)) {}
  Colour& at(int y, int x) {
    return pixels[static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)];
  }
  const Colour& at(int y, int x) const { return const_cast<Canvas*>(this)->at(y, x); }
  // The nearest pixel inside.
  const Colour& clamped(int y, int x) const {
    return at(std::clamp(y, 0, height - 1), std::clamp(x, 0, width - 1));
  }
  // The pixel that a length of one was made for: sizes below are given for images of 32 pixels.
  float unit() const { return static_cast<float>(std::min(height, width)) / 32.F; }
};

inline Colour mixed(const Colour& a, const Colour& b, float share_of_b) {
  return {a[0] + (b[0] - a[0]) * share_of_b, a[1] + (b[1] - a[1]) * share_of_b,
          a[2] + (b[2] - a[2]) * share_of_b};
}

inline float uniform(Random& random, double low, double high) {
  return static_cast<float>(random.uniform(low, high));
}

// Mean 0, variance 1 and within -3..3: the sum of three uniform numbers, which is near enough to a Gaussian
// for pixels and much faster.
inline float rough_normal(Random& random) {
  const uint64_t bits = random.next();
  return static_cast<float>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff)) / 32768 - 3;
}

inline float luma_of(const Colour& c) { return 0.299F * c[0] + 0.587F * c[1] + 0.114F * c[2]; }

// REQUIRES: u8[H,W,3] or u8[H,W,1]
Canvas to_canvas(const Tensor& image);
Result<Tensor> to_image(const Canvas& canvas);

// Smooth noise in 0..1, about one hill a unit.
class ValueNoise {
 public:
  explicit ValueNoise(uint64_t seed) : seed_(seed) {}
  float operator()(float x, float y) const;

 private:
  float lattice(int x, int y) const;
  uint64_t seed_;
};

// A repeating pattern of 0 and 1, turned at random: stripes, squares or dots.
class Pattern {
 public:
  Pattern(Random& random, float period);
  float operator()(float x, float y) const;

 private:
  enum class Kind : uint8_t { kStripes, kSquares, kDots };
  Kind kind_;
  float cos_, sin_, phase_;  // per period
};

}  // namespace limber
