#include "data/augment.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "data/luma.h"

namespace limber {
namespace {

int64_t height_of(const Tensor& image) { return image.shape().dim(0); }
int64_t width_of(const Tensor& image) { return image.shape().dim(1); }
int64_t channels_of(const Tensor& image) { return image.shape().dim(2); }

// --- options ----------------------------------------------------------------------------------------

Status check_range(const char* name, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  return invalid("augmentation: {} is {}; expected {} to {}", name, value, low, high);
}

Status check(const AugmentOptions& o) {
  LIMBER_TRY(check_range("padding", o.padding, 0, kMaxImageSide));
  LIMBER_TRY(check_range("cutout", o.cutout, 0, kMaxImageSide));
  LIMBER_TRY(check_range("flip", o.flip, 0, 1));
  LIMBER_TRY(check_range("brightness", o.brightness, 0, 1));
  LIMBER_TRY(check_range("contrast", o.contrast, 0, 1));
  LIMBER_TRY(check_range("saturation", o.saturation, 0, 1));
  LIMBER_TRY(check_range("min_area", o.min_area, 0.001, 1));
  if (o.min_area < 1 && o.padding > 0) {
    return invalid("augmentation: min_area {} and padding {}; use one of the two", o.min_area, o.padding);
  }
  return {};
}

// --- pixels -----------------------------------------------------------------------------------------

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

float factor(Random& random, double spread) {
  return static_cast<float>(random.uniform(1 - spread, 1 + spread));
}

int64_t between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

}  // namespace

Result<Augmenter> Augmenter::make(const Preprocess& input, const AugmentOptions& options) {
  LIMBER_TRY(check(options));
  LIMBER_ASSIGN(Preprocessor made, Preprocessor::make(input));
  return Augmenter(std::move(made), options);
}

// Ten tries to find a rectangle that fits, then the whole image.
Result<Tensor> Augmenter::random_area(const Tensor& image, Random& random) const {
  const Preprocess& how = input_.how();
  const int64_t height = height_of(image), width = width_of(image);
  for (int i = 0; i < 10; ++i) {
    const double area = static_cast<double>(height * width) * random.uniform(options_.min_area, 1);
    const double ratio = std::exp(random.uniform(std::log(3.0 / 4), std::log(4.0 / 3)));
    const int64_t w = std::llround(std::sqrt(area * ratio)), h = std::llround(std::sqrt(area / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const int64_t top = between(random, 0, height - h), left = between(random, 0, width - w);
    LIMBER_ASSIGN(const Tensor part, cut(image, top, left, h, w));
    return limber::resize(part, how.height, how.width);
  }
  return limber::resize(image, how.height, how.width);
}

Status Augmenter::jitter(Tensor& image, Random& random, Preprocessor::Tables& tables) const {
  const Preprocess& how = input_.how();
  if (options_.saturation > 0 && channels_of(image) == 3) {
    LIMBER_ASSIGN(image, saturated(image, factor(random, options_.saturation)));
  }
  const float brightness = factor(random, options_.brightness), contrast = factor(random, options_.contrast);
  const float middle = std::min(255.F, mean_luma(image) * brightness);
  for (size_t c = 0; c < static_cast<size_t>(how.channels); ++c) {
    const float mean = how.normalisation.mean[c], scale = 1.F / how.normalisation.std[c];
    for (size_t v = 0; v < 256; ++v) {
      const float lit = std::min(255.F, static_cast<float>(v) * brightness);
      tables[c][v] = (std::clamp((lit - middle) * contrast + middle, 0.F, 255.F) / 255.F - mean) * scale;
    }
  }
  return {};
}

void Augmenter::cut_out(Random& random, std::span<float> chw) const {
  const int64_t height = input_.how().height, width = input_.how().width, side = options_.cutout;
  const int64_t top = between(random, 0, height - 1) - side / 2,
                left = between(random, 0, width - 1) - side / 2;
  const int64_t first = std::max<int64_t>(left, 0), last = std::min(left + side, width);
  for (int64_t c = 0; c < input_.how().channels; ++c) {
    for (int64_t y = std::max<int64_t>(top, 0); y < std::min(top + side, height); ++y) {
      std::fill_n(chw.data() + (c * height + y) * width + first, last - first, 0.F);
    }
  }
}

std::string_view random_change(const AugmentOptions& options) {
  if (options.flip > 0) return "flip";
  if (options.padding > 0) return "padding";
  if (options.min_area < 1) return "min-area";
  if (options.brightness > 0 || options.contrast > 0 || options.saturation > 0) return "jitter";
  return options.cutout > 0 ? "cutout" : "";
}

Status Augmenter::train(const Tensor& image, Random& random, std::span<float> chw) const {
  LIMBER_ASSIGN(const Tensor input, input_.with_channels(image));
  LIMBER_ASSIGN(Tensor fitted, options_.min_area < 1 ? random_area(input, random) : input_.fit(input));
  const int64_t pad = options_.padding;
  const Preprocessor::Window window{between(random, -pad, height_of(fitted) - input_.how().height + pad),
                                    between(random, -pad, width_of(fitted) - input_.how().width + pad),
                                    random.uniform() < options_.flip};
  if (options_.brightness > 0 || options_.contrast > 0 || options_.saturation > 0) {
    Preprocessor::Tables tables;
    LIMBER_TRY(jitter(fitted, random, tables));
    input_.write(fitted, window, tables, chw);
  } else {
    input_.write(fitted, window, input_.tables(), chw);
  }
  if (options_.cutout > 0) cut_out(random, chw);
  return {};
}

}  // namespace limber
