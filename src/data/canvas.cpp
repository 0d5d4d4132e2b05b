#include "data/canvas.h"

#include "base/hash.h"

namespace limber {

Canvas to_canvas(const Tensor& image) {
  LIMBER_ASSERT(image.dtype() == DType::kU8 && image.shape().rank() == 3);
  const auto channels = static_cast<size_t>(image.shape().dim(2));
  LIMBER_ASSERT(channels == 1 || channels == 3);
  Canvas canvas(static_cast<int>(image.shape().dim(0)), static_cast<int>(image.shape().dim(1)));
  const uint8_t* from = image.data<uint8_t>().data();
  for (Colour& pixel : canvas.pixels) {
    for (size_t c = 0; c < 3; ++c) pixel[c] = static_cast<float>(from[channels == 3 ? c : 0]);
    from += channels;
  }
  return canvas;
}

Result<Tensor> to_image(const Canvas& canvas) {
  LIMBER_ASSIGN(Tensor image, Tensor::allocate({DType::kU8, Shape{canvas.height, canvas.width, 3}}));
  uint8_t* to = image.data<uint8_t>().data();
  for (const Colour& pixel : canvas.pixels) {
    for (const float value : pixel) *to++ = static_cast<uint8_t>(std::clamp(value + 0.5F, 0.F, 255.F));
  }
  return image;
}

float ValueNoise::lattice(int x, int y) const {
  const auto key = static_cast<uint64_t>(static_cast<uint32_t>(x)) << 32 | static_cast<uint32_t>(y);
  return static_cast<float>(Random(seed_ ^ key * 0xd6e8feb86659fd93ULL).uniform());
}

float ValueNoise::operator()(float x, float y) const {
  const float fx = std::floor(x), fy = std::floor(y);
  const int ix = static_cast<int>(fx), iy = static_cast<int>(fy);
  const auto smooth = [](float t) { return t * t * (3 - 2 * t); };
  const float u = smooth(x - fx), v = smooth(y - fy);
  const float top = std::lerp(lattice(ix, iy), lattice(ix + 1, iy), u);
  const float bottom = std::lerp(lattice(ix, iy + 1), lattice(ix + 1, iy + 1), u);
  return std::lerp(top, bottom, v);
}

Pattern::Pattern(Random& random, float period) : kind_(static_cast<Kind>(random.below(3))) {
  const float angle = uniform(random, 0, 3.14159);
  cos_ = std::cos(angle) / period;
  sin_ = std::sin(angle) / period;
  phase_ = uniform(random, 0, 1);
}

float Pattern::operator()(float x, float y) const {
  const float u = x * cos_ + y * sin_ + phase_, v = y * cos_ - x * sin_;
  const float a = u - std::floor(u), b = v - std::floor(v);
  if (kind_ == Kind::kStripes) return a < 0.5F ? 1.F : 0.F;
  if (kind_ == Kind::kSquares) return (a < 0.5F) == (b < 0.5F) ? 1.F : 0.F;
  return (a - 0.5F) * (a - 0.5F) + (b - 0.5F) * (b - 0.5F) < 0.1F ? 1.F : 0.F;
}

}  // namespace limber
