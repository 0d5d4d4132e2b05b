// Private to this folder: colour planes as floats, and the filters that corruptions are made of.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace limber {

// One number a pixel.
struct Field {
  int height = 0, width = 0;
  std::vector<float> values;  // row-major

  Field() = default;
  Field(int h, int w, float value = 0)
      : height(h), width(w), values(static_cast<size_t>(h) * static_cast<size_t>(w), value) {}
  float& at(int y, int x) {
    return values[static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)];
  }
  float at(int y, int x) const { return const_cast<Field*>(this)->at(y, x); }
  float largest() const;
};

// Red, green and blue in 0..1.
using Picture = std::array<Field, 3>;
// REQUIRES: u8[H,W,3] or u8[H,W,1]
Picture to_picture(const Tensor& image);
// What is outside 0..1 is cut, and fractions of 1/255 are dropped, not rounded.
Result<Tensor> to_image(const Picture& picture);

// What lies beyond the edge of "abcd".
enum class Border : uint8_t {
  kNearest,  // aaa|abcd|ddd
  kReflect,  // cba|abcd|dcb
  kMirror,   // dcb|abcd|cba
};
int inside(int index, int size, Border border);  // the index that stands for one outside

// Weights of exp(-i^2 / 2 sigma^2), i in -radius..radius, with the sum 1.
std::vector<float> gaussian_taps(float sigma, int radius);
Field blurred(const Field& from, std::span<const float> taps, Border border);        // along both axes
Field gaussian_blurred(const Field& from, float sigma, float reach, Border border);  // out to `reach` sigmas

struct SquareFilter {
  int radius = 0;
  std::vector<float> weights;  // (2 radius + 1)^2
};
Field filtered(const Field& from, const SquareFilter& kernel, Border border);

// As seen by a camera that moves in a straight line: weights fall off as half a Gaussian over 2 radius + 1
// pixels.
Field motion_blurred(const Field& from, int radius, float sigma, double degrees);
// The middle, larger by `zoom` (at least 1), cut to the same size.
Field zoomed(const Field& from, double zoom);
// Between pixels, linearly.
float sampled(const Field& from, float y, float x, Border border);
// The mean of the pixels whose centres lie in each new pixel.
Field box_resized(const Field& from, int height, int width);

}  // namespace limber
