// Geometry and arithmetic on decoded images.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "data/image.h"
#include "data/luma.h"

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

// Which source samples make each destination sample, and how much of each.
struct Taps {
  struct Sample {
    int64_t first, count;
    size_t weights;  // where they begin
  };
  std::vector<Sample> samples;
  std::vector<float> weights;
};

Taps bilinear_taps(int64_t source, int64_t target) {
  const double scale = static_cast<double>(source) / static_cast<double>(target);
  const double support = std::max(1.0, scale);
  Taps taps;
  taps.samples.reserve(static_cast<size_t>(target));
  for (int64_t i = 0; i < target; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(centre - support + 0.5));
    const int64_t last = std::min(source, static_cast<int64_t>(centre + support + 0.5));
    const size_t begin = taps.weights.size();
    taps.samples.push_back({first, last - first, begin});
    double sum = 0;
    for (int64_t s = first; s < last; ++s) {
      const double weight = std::max(0.0, 1 - std::abs((static_cast<double>(s) + 0.5 - centre) / support));
      taps.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (size_t w = begin; w < taps.weights.size(); ++w)
      taps.weights[w] = static_cast<float>(taps.weights[w] / sum);
  }
  return taps;
}

// One source row at the destination's width, rounded to bytes (as Pillow does between its two passes).
template <int kChannels>
void resize_row(const uint8_t* pixels, const Taps& columns, uint8_t* out) {
  for (const Taps::Sample& sample : columns.samples) {
    const uint8_t* pixel = pixels + sample.first * kChannels;
    const float* weights = &columns.weights[sample.weights];
    std::array<float, kChannels> sums{};
    for (int64_t t = 0; t < sample.count; ++t, pixel += kChannels) {
      for (size_t c = 0; c < kChannels; ++c) sums[c] += weights[t] * static_cast<float>(pixel[c]);
    }
    for (const float sum : sums) *out++ = to_byte(sum);
  }
}

// Bytes may alias anything, which would keep this from being vectorised.
void add_row(const uint8_t* __restrict row, size_t count, float weight, float* __restrict sum) {
  for (size_t i = 0; i < count; ++i) sum[i] += weight * static_cast<float>(row[i]);
}

}  // namespace

Result<Tensor> resize(const Tensor& image, int height, int width) {
  const Extent from = extent_of(image);
  LIMBER_TRY(check_side(height, width));
  if (from.height == height && from.width == width) return image;
  LIMBER_ASSIGN(Tensor out, Tensor::allocate({DType::kU8, Shape{height, width, from.channels}}));
  LIMBER_ASSERT(from.channels == 1 || from.channels == 3);
  const Taps columns = bilinear_taps(from.width, width), rows = bilinear_taps(from.height, height);
  const uint8_t* source = image.data<uint8_t>().data();
  uint8_t* target = out.data<uint8_t>().data();

  // Rows already narrowed: as many as a destination row may read.
  const auto stride = static_cast<size_t>(width * from.channels);
  int64_t most = 1;
  for (const Taps::Sample& sample : rows.samples) most = std::max(most, sample.count);
  std::vector<uint8_t> narrowed(static_cast<size_t>(most) * stride);
  std::vector<float> sum(stride);
  int64_t next = 0;
  for (const Taps::Sample& sample : rows.samples) {
    std::fill(sum.begin(), sum.end(), 0.F);
    next = std::max(next, sample.first);
    for (int64_t t = 0; t < sample.count; ++t) {
      const int64_t y = sample.first + t;
      uint8_t* row = narrowed.data() + static_cast<size_t>(y % most) * stride;
      if (y == next) {
        const uint8_t* pixels = source + y * from.width * from.channels;
        from.channels == 3 ? resize_row<3>(pixels, columns, row) : resize_row<1>(pixels, columns, row);
        ++next;
      }
      const float weight = rows.weights[sample.weights + static_cast<size_t>(t)];
      add_row(row, stride, weight, sum.data());
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
  constexpr int kDiscs = 6;  // of any size and colour: a picture with edges and areas
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
