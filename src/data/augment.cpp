#include "data/augment.h"

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

using Tables = Augmenter::Tables;

// Where the output lies in an image; parts outside are black.
struct Window {
  int64_t top;
  int64_t left;
  bool mirrored;
};

int64_t height_of(const Tensor& image) { return image.shape().dim(0); }
int64_t width_of(const Tensor& image) { return image.shape().dim(1); }
int64_t channels_of(const Tensor& image) { return image.shape().dim(2); }

float luma(const uint8_t* rgb) {
  return 0.299F * static_cast<float>(rgb[0]) + 0.587F * static_cast<float>(rgb[1]) +
         0.114F * static_cast<float>(rgb[2]);
}

uint8_t to_byte(float value) { return static_cast<uint8_t>(std::clamp(value + 0.5F, 0.F, 255.F)); }

// --- options ----------------------------------------------------------------------------------------

Status check_range(const char* name, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  return invalid("augmentation: {} is {}; expected {} to {}", name, value, low, high);
}

Status check_normalisation(const Normalisation& how) {
  for (size_t c = 0; c < 3; ++c) {
    if (std::isfinite(how.mean[c]) && std::isfinite(how.std[c]) && how.std[c] > 0) continue;
    return invalid("augmentation: mean {} and std {} of channel {}; both must be finite, std above 0",
                   how.mean[c], how.std[c], c);
  }
  return {};
}

Status check(const AugmentOptions& o) {
  LIMBER_TRY(check_range("height", o.height, 1, kMaxImageSide));
  LIMBER_TRY(check_range("width", o.width, 1, kMaxImageSide));
  LIMBER_TRY(check_range("padding", o.padding, 0, kMaxImageSide));
  LIMBER_TRY(check_range("cutout", o.cutout, 0, kMaxImageSide));
  LIMBER_TRY(check_range("flip", o.flip, 0, 1));
  LIMBER_TRY(check_range("brightness", o.brightness, 0, 1));
  LIMBER_TRY(check_range("contrast", o.contrast, 0, 1));
  LIMBER_TRY(check_range("saturation", o.saturation, 0, 1));
  LIMBER_TRY(check_range("min_area", o.min_area, 0.001, 1));
  LIMBER_TRY(check_normalisation(o.normalisation));
  if (o.channels != 1 && o.channels != 3)
    return invalid("augmentation: {} channels; expected 1 or 3", o.channels);
  if (o.resize != 0) LIMBER_TRY(check_range("resize", o.resize, std::max(o.height, o.width), kMaxImageSide));
  if (o.min_area < 1 && o.padding > 0) {
    return invalid("augmentation: min_area {} and padding {}; use one of the two", o.min_area, o.padding);
  }
  return {};
}

// --- pixels -----------------------------------------------------------------------------------------

Result<Tensor> to_grey(const Tensor& image) {
  LIMBER_ASSIGN(Tensor grey, Tensor::allocate({DType::kU8, Shape{height_of(image), width_of(image), 1}}));
  const uint8_t* rgb = image.data<uint8_t>().data();
  for (uint8_t& value : grey.data<uint8_t>()) {
    value = to_byte(luma(rgb));
    rgb += 3;
  }
  return grey;
}

// Luma where one channel is wanted. The tables widen grey to three.
Result<Tensor> with_channels(const Tensor& image, int channels) {
  LIMBER_ASSERT(image.dtype() == DType::kU8 && image.shape().rank() == 3);
  LIMBER_ASSERT(channels_of(image) == 1 || channels_of(image) == 3);
  return channels == 1 && channels_of(image) == 3 ? to_grey(image) : image;
}

Result<Tensor> cut(const Tensor& image, int64_t top, int64_t left, int64_t height, int64_t width) {
  const int64_t channels = channels_of(image);
  LIMBER_ASSIGN(Tensor out, Tensor::allocate({DType::kU8, Shape{height, width, channels}}));
  const uint8_t* from = image.data<uint8_t>().data();
  uint8_t* to = out.data<uint8_t>().data();
  for (int64_t y = 0; y < height; ++y) {
    to = std::copy_n(from + ((top + y) * width_of(image) + left) * channels, width * channels, to);
  }
  return out;
}

// Away from grey by `factor`, into new bytes.
Result<Tensor> saturated(const Tensor& image, float factor) {
  LIMBER_ASSIGN(Tensor out, Tensor::allocate(image.type()));
  const auto from = image.data<uint8_t>();
  uint8_t* to = out.data<uint8_t>().data();
  for (size_t i = 0; i < from.size(); i += 3) {
    const float grey = luma(&from[i]);
    for (size_t c = 0; c < 3; ++c) {
      *to++ = to_byte(grey + factor * (static_cast<float>(from[i + c]) - grey));
    }
  }
  return out;
}

float mean_luma(const Tensor& image) {
  const auto bytes = image.data<uint8_t>();
  std::array<int64_t, 3> sums{};
  const auto channels = static_cast<size_t>(channels_of(image));
  for (size_t i = 0; i < bytes.size(); i += channels) {
    for (size_t c = 0; c < channels; ++c) sums[c] += bytes[i + c];
  }
  const size_t count = bytes.size() / channels;
  const auto pixels = static_cast<float>(count);
  if (channels == 1) return static_cast<float>(sums[0]) / pixels;
  return (0.299F * static_cast<float>(sums[0]) + 0.587F * static_cast<float>(sums[1]) +
          0.114F * static_cast<float>(sums[2])) /
         pixels;
}

// One row of one channel. `out` steps by +1 or -1.
void write_row(const uint8_t* from, int64_t stride, const std::array<float, 256>& table, int64_t count,
               float* out, int64_t step) {
  for (int64_t i = 0; i < count; ++i) {
    *out = table[*from];
    from += stride;
    out += step;
  }
}

// Cuts, mirrors, normalises and separates the channels in one pass.
void write_window(const Tensor& image, const Window& window, const Tables& tables, const AugmentOptions& o,
                  float* chw) {
  const int64_t height = height_of(image), width = width_of(image), channels = channels_of(image);
  const uint8_t* pixels = image.data<uint8_t>().data();
  const int64_t first = std::clamp<int64_t>(-window.left, 0, o.width);
  const int64_t last = std::clamp<int64_t>(width - window.left, first, o.width);
  for (int64_t c = 0; c < o.channels; ++c) {
    const auto& table = tables[static_cast<size_t>(c)];
    const uint8_t* channel = pixels + (channels == 3 ? c : 0);
    for (int64_t y = 0; y < o.height; ++y) {
      float* out = chw + (c * o.height + y) * o.width;
      const int64_t source = window.top + y;
      if (source < 0 || source >= height || last - first < o.width) std::fill_n(out, o.width, table[0]);
      if (source < 0 || source >= height) continue;
      const uint8_t* from = channel + (source * width + window.left + first) * channels;
      float* start = window.mirrored ? out + (o.width - 1 - first) : out + first;
      write_row(from, channels, table, last - first, start, window.mirrored ? -1 : 1);
    }
  }
}

float factor(Random& random, double spread) {
  return static_cast<float>(random.uniform(1 - spread, 1 + spread));
}

int64_t between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

}  // namespace

Augmenter::Augmenter(const AugmentOptions& options) : options_(options) {
  for (size_t c = 0; c < 3; ++c) {
    for (size_t v = 0; v < 256; ++v) {
      tables_[c][v] =
          (static_cast<float>(v) / 255.F - options.normalisation.mean[c]) / options.normalisation.std[c];
    }
  }
}

Result<Augmenter> Augmenter::make(const AugmentOptions& options) {
  LIMBER_TRY(check(options));
  return Augmenter(options);
}

size_t Augmenter::output_size() const {
  return static_cast<size_t>(options_.channels) * static_cast<size_t>(options_.height) *
         static_cast<size_t>(options_.width);
}

Result<Tensor> Augmenter::fit(const Tensor& image) const {
  const int64_t height = height_of(image), width = width_of(image);
  if (options_.resize > 0) return limber::resize_shorter(image, options_.resize);
  int64_t new_height = options_.height, new_width = options_.width;
  if (height * options_.width >= width * options_.height) {
    new_height = height * options_.width / width;
  } else {
    new_width = width * options_.height / height;
  }
  if (new_height > kMaxImageSide || new_width > kMaxImageSide) {
    return invalid("an image of {}x{} is too narrow to cover {}x{}", height, width, options_.height,
                   options_.width);
  }
  return limber::resize(image, static_cast<int>(new_height), static_cast<int>(new_width));
}

// Ten tries to find a rectangle that fits, then the whole image.
Result<Tensor> Augmenter::random_area(const Tensor& image, Random& random) const {
  const int64_t height = height_of(image), width = width_of(image);
  for (int i = 0; i < 10; ++i) {
    const double area = static_cast<double>(height * width) * random.uniform(options_.min_area, 1);
    const double ratio = std::exp(random.uniform(std::log(3.0 / 4), std::log(4.0 / 3)));
    const int64_t w = std::llround(std::sqrt(area * ratio)), h = std::llround(std::sqrt(area / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const int64_t top = between(random, 0, height - h), left = between(random, 0, width - w);
    LIMBER_ASSIGN(const Tensor part, cut(image, top, left, h, w));
    return limber::resize(part, options_.height, options_.width);
  }
  return limber::resize(image, options_.height, options_.width);
}

Status Augmenter::jitter(Tensor& image, Random& random, Tables& tables) const {
  if (options_.saturation > 0 && channels_of(image) == 3) {
    LIMBER_ASSIGN(image, saturated(image, factor(random, options_.saturation)));
  }
  const float brightness = factor(random, options_.brightness), contrast = factor(random, options_.contrast);
  const float middle = std::min(255.F, mean_luma(image) * brightness);
  for (size_t c = 0; c < static_cast<size_t>(options_.channels); ++c) {
    const float mean = options_.normalisation.mean[c], scale = 1.F / options_.normalisation.std[c];
    for (size_t v = 0; v < 256; ++v) {
      const float lit = std::min(255.F, static_cast<float>(v) * brightness);
      tables[c][v] = (std::clamp((lit - middle) * contrast + middle, 0.F, 255.F) / 255.F - mean) * scale;
    }
  }
  return {};
}

void Augmenter::cut_out(Random& random, std::span<float> chw) const {
  const int64_t height = options_.height, width = options_.width, side = options_.cutout;
  const int64_t top = between(random, 0, height - 1) - side / 2,
                left = between(random, 0, width - 1) - side / 2;
  const int64_t first = std::max<int64_t>(left, 0), last = std::min(left + side, width);
  for (int64_t c = 0; c < options_.channels; ++c) {
    for (int64_t y = std::max<int64_t>(top, 0); y < std::min(top + side, height); ++y) {
      std::fill_n(chw.data() + (c * height + y) * width + first, last - first, 0.F);
    }
  }
}

std::string_view random_change(const AugmentOptions& options) {
  if (options.flip > 0) return "--flip";
  if (options.padding > 0) return "--padding";
  if (options.min_area < 1) return "--min-area";
  if (options.brightness > 0 || options.contrast > 0 || options.saturation > 0) return "--jitter";
  return options.cutout > 0 ? "--cutout" : "";
}

Status Augmenter::train(const Tensor& image, Random& random, std::span<float> chw) const {
  LIMBER_ASSERT(chw.size() == output_size());
  LIMBER_ASSIGN(const Tensor input, with_channels(image, options_.channels));
  LIMBER_ASSIGN(Tensor fitted, options_.min_area < 1 ? random_area(input, random) : fit(input));
  const int64_t pad = options_.padding;
  const Window window{between(random, -pad, height_of(fitted) - options_.height + pad),
                      between(random, -pad, width_of(fitted) - options_.width + pad),
                      random.uniform() < options_.flip};
  if (options_.brightness > 0 || options_.contrast > 0 || options_.saturation > 0) {
    Tables tables;
    LIMBER_TRY(jitter(fitted, random, tables));
    write_window(fitted, window, tables, options_, chw.data());
  } else {
    write_window(fitted, window, tables_, options_, chw.data());
  }
  if (options_.cutout > 0) cut_out(random, chw);
  return {};
}

Status Augmenter::evaluate(const Tensor& image, std::span<float> chw) const {
  LIMBER_ASSERT(chw.size() == output_size());
  LIMBER_ASSIGN(const Tensor input, with_channels(image, options_.channels));
  LIMBER_ASSIGN(const Tensor fitted, fit(input));
  // Half to even, as crop_centre rounds.
  const auto middle = [](int64_t slack) {
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(slack) / 2));
  };
  const Window window{middle(height_of(fitted) - options_.height), middle(width_of(fitted) - options_.width),
                      false};
  write_window(fitted, window, tables_, options_, chw.data());
  return {};
}

}  // namespace limber
