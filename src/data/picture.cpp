#include "data/picture.h"

#include <algorithm>
#include <cmath>

namespace limber {

float Field::largest() const { return *std::max_element(values.begin(), values.end()); }

Picture to_picture(const Tensor& image) {
  LIMBER_ASSERT(image.dtype() == DType::kU8 && image.shape().rank() == 3);
  const auto channels = static_cast<size_t>(image.shape().dim(2));
  LIMBER_ASSERT(channels == 1 || channels == 3);
  const Field empty(static_cast<int>(image.shape().dim(0)), static_cast<int>(image.shape().dim(1)));
  Picture picture{empty, empty, empty};
  const auto from = image.data<uint8_t>();
  for (size_t i = 0; i < empty.values.size(); ++i) {
    for (size_t c = 0; c < 3; ++c)
      picture[c].values[i] = static_cast<float>(from[i * channels + (channels == 3 ? c : 0)]) / 255;
  }
  return picture;
}

Result<Tensor> to_image(const Picture& picture) {
  LIMBER_ASSIGN(Tensor image, Tensor::allocate({DType::kU8, Shape{picture[0].height, picture[0].width, 3}}));
  const auto to = image.data<uint8_t>();
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = 0; i < picture[c].values.size(); ++i)
      to[3 * i + c] = static_cast<uint8_t>(255 * std::clamp(picture[c].values[i], 0.F, 1.F));
  }
  return image;
}

int inside(int index, int size, Border border) {
  if (index >= 0 && index < size) return index;
  if (border == Border::kNearest || size == 1) return std::clamp(index, 0, size - 1);
  const int period = border == Border::kReflect ? 2 * size : 2 * size - 2;
  const int within = (index % period + period) % period;
  if (within < size) return within;
  return border == Border::kReflect ? period - 1 - within : period - within;
}

std::vector<float> gaussian_taps(float sigma, int radius) {
  std::vector<float> taps;
  float sum = 0;
  for (int i = -radius; i <= radius; ++i) {
    taps.push_back(i == 0 ? 1.F : std::exp(-static_cast<float>(i * i) / (2 * sigma * sigma)));
    sum += taps.back();
  }
  for (float& tap : taps) tap /= sum;
  return taps;
}

Field blurred(const Field& from, std::span<const float> taps, Border border) {
  const int radius = static_cast<int>(taps.size()) / 2;
  Field across(from.height, from.width), to(from.height, from.width);
  for (int i = -radius; i <= radius; ++i) {
    const float tap = taps[static_cast<size_t>(i + radius)];
    for (int x = 0; x < from.width; ++x) {
      const int source = inside(x + i, from.width, border);
      for (int y = 0; y < from.height; ++y) across.at(y, x) += tap * from.at(y, source);
    }
  }
  for (int i = -radius; i <= radius; ++i) {
    const float tap = taps[static_cast<size_t>(i + radius)];
    for (int y = 0; y < from.height; ++y) {
      const int source = inside(y + i, from.height, border);
      for (int x = 0; x < from.width; ++x) to.at(y, x) += tap * across.at(source, x);
    }
  }
  return to;
}

Field gaussian_blurred(const Field& from, float sigma, float reach, Border border) {
  return blurred(from, gaussian_taps(sigma, static_cast<int>(reach * sigma + 0.5F)), border);
}

Field filtered(const Field& from, const SquareFilter& kernel, Border border) {
  Field to(from.height, from.width);
  size_t next = 0;
  for (int dy = -kernel.radius; dy <= kernel.radius; ++dy) {
    for (int dx = -kernel.radius; dx <= kernel.radius; ++dx) {
      const float weight = kernel.weights[next++];
      if (weight == 0) continue;
      for (int y = 0; y < from.height; ++y) {
        const int row = inside(y + dy, from.height, border);
        for (int x = 0; x < from.width; ++x)
          to.at(y, x) += weight * from.at(row, inside(x + dx, from.width, border));
      }
    }
  }
  return to;
}

Field motion_blurred(const Field& from, int radius, float sigma, double degrees) {
  constexpr double kRadians = 3.14159265358979323846 / 180;
  const int length = 2 * radius + 1;
  std::vector<float> taps(static_cast<size_t>(length));
  float sum = 0;
  for (int i = 0; i < length; ++i)
    sum += taps[static_cast<size_t>(i)] = std::exp(-static_cast<float>(i * i) / (2 * sigma * sigma));
  Field to(from.height, from.width);
  for (int i = 0; i < length; ++i) {
    const int dy = static_cast<int>(std::ceil(i * std::sin(degrees * kRadians) - 0.5));
    const int dx = static_cast<int>(std::ceil(i * std::cos(degrees * kRadians) - 0.5));
    if (std::abs(dy) >= from.height || std::abs(dx) >= from.width) break;
    const float tap = taps[static_cast<size_t>(i)] / sum;
    for (int y = 0; y < from.height; ++y) {
      const int row = inside(y + dy, from.height, Border::kNearest);
      for (int x = 0; x < from.width; ++x)
        to.at(y, x) += tap * from.at(row, inside(x + dx, from.width, Border::kNearest));
    }
  }
  return to;
}

Field zoomed(const Field& from, double zoom) {
  const int height = static_cast<int>(std::ceil(from.height / zoom));
  const int width = static_cast<int>(std::ceil(from.width / zoom));
  const int large_h = std::max(from.height, static_cast<int>(std::lround(height * zoom)));
  const int large_w = std::max(from.width, static_cast<int>(std::lround(width * zoom)));
  // The corners of the part that is cut out are the corners of its enlargement.
  const float step_y = large_h > 1 ? static_cast<float>(height - 1) / static_cast<float>(large_h - 1) : 0.F;
  const float step_x = large_w > 1 ? static_cast<float>(width - 1) / static_cast<float>(large_w - 1) : 0.F;
  const auto top = static_cast<float>((from.height - height) / 2);
  const auto left = static_cast<float>((from.width - width) / 2);
  const int trim_y = (large_h - from.height) / 2, trim_x = (large_w - from.width) / 2;
  Field to(from.height, from.width);
  for (int y = 0; y < from.height; ++y) {
    for (int x = 0; x < from.width; ++x)
      to.at(y, x) = sampled(from, top + static_cast<float>(y + trim_y) * step_y,
                            left + static_cast<float>(x + trim_x) * step_x, Border::kNearest);
  }
  return to;
}

float sampled(const Field& from, float y, float x, Border border) {
  const float fy = std::floor(y), fx = std::floor(x);
  const int top = inside(static_cast<int>(fy), from.height, border),
            bottom = inside(static_cast<int>(fy) + 1, from.height, border),
            left = inside(static_cast<int>(fx), from.width, border),
            right = inside(static_cast<int>(fx) + 1, from.width, border);
  const float u = x - fx, v = y - fy;
  return (1 - v) * ((1 - u) * from.at(top, left) + u * from.at(top, right)) +
         v * ((1 - u) * from.at(bottom, left) + u * from.at(bottom, right));
}

namespace {

struct PixelRange {
  int begin, end;
};

// The old pixels whose centres lie in new pixel `index`, at least one.
PixelRange box_of(int index, int from, int to) {
  const double scale = static_cast<double>(from) / to, half = 0.5 * std::max(scale, 1.0);
  const double centre = (index + 0.5) * scale;
  const int begin = std::clamp(static_cast<int>(centre - half + 0.5), 0, from - 1);
  return {begin, std::clamp(static_cast<int>(centre + half + 0.5), begin + 1, from)};
}

}  // namespace

Field box_resized(const Field& from, int height, int width) {
  Field to(height, width);
  for (int y = 0; y < height; ++y) {
    const PixelRange rows = box_of(y, from.height, height);
    for (int x = 0; x < width; ++x) {
      const PixelRange columns = box_of(x, from.width, width);
      float sum = 0;
      for (int i = rows.begin; i < rows.end; ++i) {
        for (int k = columns.begin; k < columns.end; ++k) sum += from.at(i, k);
      }
      to.at(y, x) = sum / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
    }
  }
  return to;
}

}  // namespace limber
