// Geometry and arithmetic on decoded images.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "data/image.h"

namespace limber {
namespace {

struct Extent {
  int64_t height, width, channels;
};

Extent extent_of(const Tensor& image) {
  LIMBER_ASSERT(image.dtype() == DType::kU8 && image.shape().rank() == 3);
  return {image.shape().dim(0), image.shape().dim(1), image.shape().dim(2)};
}

Status check_side(int64_t height, int64_t width) {
  if (height >= 1 && width >= 1 && height <= kMaxImageSide && width <= kMaxImageSide) return {};
  return invalid("an image size of {}x{}; sides must be in 1..{}", height, width, kMaxImageSide);
}

uint8_t to_byte(float value) { return static_cast<uint8_t>(std::clamp(value + 0.5F, 0.F, 255.F)); }

// Which source samples make one destination sample, and how much of each.
struct Taps {
  int64_t first = 0;
  std::vector<float> weights;
};

std::vector<Taps> bilinear_taps(int64_t source, int64_t target) {
  const double scale = static_cast<double>(source) / static_cast<double>(target);
  const double support = std::max(1.0, scale);
  std::vector<Taps> all(static_cast<size_t>(target));
  for (int64_t i = 0; i < target; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(centre - support + 0.5));
    const int64_t last = std::min(source, static_cast<int64_t>(centre + support + 0.5));
    Taps& taps = all[static_cast<size_t>(i)];
    taps.first = first;
    double sum = 0;
    for (int64_t s = first; s < last; ++s) {
      const double weight = std::max(0.0, 1 - std::abs((static_cast<double>(s) + 0.5 - centre) / support));
      taps.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : taps.weights) weight = static_cast<float>(weight / sum);
  }
  return all;
}

// One source row at the destination's width, rounded to bytes (as Pillow does between its two passes).
void resize_row(const uint8_t* pixels, int64_t channels, const std::vector<Taps>& columns,
                std::vector<uint8_t>& row) {
  row.resize(columns.size() * static_cast<size_t>(channels));
  uint8_t* out = row.data();
  for (const Taps& taps : columns) {
    for (int64_t c = 0; c < channels; ++c) {
      const uint8_t* sample = pixels + taps.first * channels + c;
      float sum = 0;
      for (float weight : taps.weights) {
        sum += weight * static_cast<float>(*sample);
        sample += channels;
      }
      *out++ = to_byte(sum);
    }
  }
}

}  // namespace

Result<Tensor> resize(const Tensor& image, int height, int width) {
  const Extent from = extent_of(image);
  LIMBER_TRY(check_side(height, width));
  if (from.height == height && from.width == width) return image;
  LIMBER_ASSIGN(Tensor out, Tensor::allocate({DType::kU8, Shape{height, width, from.channels}}));
  const auto columns = bilinear_taps(from.width, width);
  const auto rows = bilinear_taps(from.height, height);
  const uint8_t* source = image.data<uint8_t>().data();
  uint8_t* target = out.data<uint8_t>().data();

  // Rows already narrowed, kept while a destination row still reads them.
  std::vector<std::vector<uint8_t>> narrowed(static_cast<size_t>(from.height));
  std::vector<float> sum(static_cast<size_t>(width * from.channels));
  size_t released = 0;
  for (const Taps& taps : rows) {
    for (; static_cast<int64_t>(released) < taps.first; ++released)
      std::vector<uint8_t>().swap(narrowed[released]);
    std::fill(sum.begin(), sum.end(), 0.F);
    int64_t y = taps.first;
    for (float weight : taps.weights) {
      auto& row = narrowed[static_cast<size_t>(y)];
      if (row.empty()) resize_row(source + y * from.width * from.channels, from.channels, columns, row);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += weight * static_cast<float>(row[i]);
      ++y;
    }
    target = std::transform(sum.begin(), sum.end(), target, to_byte);
  }
  return out;
}

Result<Tensor> resize_shorter(const Tensor& image, int side) {
  const Extent from = extent_of(image);
  LIMBER_TRY(check_side(side, side));
  const int64_t shorter = std::min(from.height, from.width);
  const int64_t height = from.height * side / shorter;
  const int64_t width = from.width * side / shorter;
  LIMBER_TRY(check_side(height, width));
  return resize(image, static_cast<int>(height), static_cast<int>(width));
}

Result<Tensor> crop_centre(const Tensor& image, int height, int width) {
  const Extent from = extent_of(image);
  LIMBER_TRY(check_side(height, width));
  if (height > from.height || width > from.width) {
    return invalid("cannot crop {}x{} out of an image of {}x{}; resize it first", height, width, from.height,
                   from.width);
  }
  LIMBER_ASSIGN(Tensor out, Tensor::allocate({DType::kU8, Shape{height, width, from.channels}}));
  // Half to even, as torchvision rounds.
  const auto top = static_cast<int64_t>(std::nearbyint(static_cast<double>(from.height - height) / 2));
  const auto left = static_cast<int64_t>(std::nearbyint(static_cast<double>(from.width - width) / 2));
  const uint8_t* source = image.data<uint8_t>().data();
  uint8_t* target = out.data<uint8_t>().data();
  for (int64_t y = 0; y < height; ++y) {
    const uint8_t* row = source + ((top + y) * from.width + left) * from.channels;
    target = std::copy_n(row, width * from.channels, target);
  }
  return out;
}

void normalise(const Tensor& image, int channels, const Normalisation& how, std::span<float> chw) {
  const Extent from = extent_of(image);
  LIMBER_ASSERT(from.channels == 3 && (channels == 1 || channels == 3));
  const int64_t pixels = from.height * from.width;
  LIMBER_ASSERT(static_cast<int64_t>(chw.size()) == channels * pixels);
  const uint8_t* source = image.data<uint8_t>().data();
  auto luma = [](const uint8_t* rgb) {
    return 0.299F * static_cast<float>(rgb[0]) + 0.587F * static_cast<float>(rgb[1]) +
           0.114F * static_cast<float>(rgb[2]);
  };
  for (int c = 0; c < channels; ++c) {
    const auto channel = static_cast<size_t>(c);
    float* plane = chw.data() + c * pixels;
    for (int64_t i = 0; i < pixels; ++i) {
      const uint8_t* rgb = source + 3 * i;
      const float value = channels == 3 ? static_cast<float>(rgb[c]) : luma(rgb);
      plane[i] = (value / 255.F - how.mean[channel]) / how.std[channel];
    }
  }
}

Result<Tensor> draw_image(int height, int width, uint64_t seed) {
  constexpr int kDiscs = 6;
  LIMBER_TRY(check_side(height, width));
  LIMBER_ASSIGN(Tensor image, Tensor::allocate({DType::kU8, Shape{height, width, 3}}));
  Random random(seed);
  struct Disc {
    double x, y, radius;
    std::array<double, 3> colour;
  };
  std::array<Disc, kDiscs> discs;
  for (Disc& disc : discs) {
    disc = {random.uniform(),
            random.uniform(),
            random.uniform(0.05, 0.3),
            {random.uniform(0, 255), random.uniform(0, 255), random.uniform(0, 255)}};
  }
  uint8_t* out = image.data<uint8_t>().data();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double u = (x + 0.5) / width, v = (y + 0.5) / height;
      std::array<double, 3> colour{255 * u, 255 * v, 255 * (1 - u)};
      for (const Disc& disc : discs) {
        if (std::hypot(u - disc.x, v - disc.y) < disc.radius) colour = disc.colour;
      }
      for (double channel : colour) *out++ = to_byte(static_cast<float>(channel + random.uniform(-8, 8)));
    }
  }
  return image;
}

}  // namespace limber
