#include "data/preprocess.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/luma.h"

namespace limber {
namespace {

using Tables = Preprocessor::Tables;

constexpr Normalisation kImagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

// Names are what people call them; the numbers are those of torchvision, Keras, CLIP and common CIFAR
// recipes.
constexpr Preset kPresets[] = {
    {"none", "0 to 1", {}},
    {"imagenet", "mean and deviation of ImageNet, 7/8 of the scaled image", kImagenet, 0.875},
    {"minus1to1", "-1 to 1", {{0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}}},
    {"0to255", "bytes as they are", {{0, 0, 0}, {1.F / 255, 1.F / 255, 1.F / 255}}},
    {"cifar10", "mean and deviation of CIFAR-10", {{0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F}}},
    {"cifar100", "of CIFAR-100", {{0.5071F, 0.4865F, 0.4409F}, {0.2673F, 0.2564F, 0.2762F}}},
    {"mnist", "of MNIST", {{0.1307F, 0.1307F, 0.1307F}, {0.3081F, 0.3081F, 0.3081F}}},
    {"clip",
     "of CLIP's images",
     {{0.48145466F, 0.4578275F, 0.40821073F}, {0.26862954F, 0.26130258F, 0.27577711F}}},
};

int64_t height_of(const Tensor& image) { return image.shape().dim(0); }
int64_t width_of(const Tensor& image) { return image.shape().dim(1); }
int64_t channels_of(const Tensor& image) { return image.shape().dim(2); }

Status check_side(const char* name, int pixels) {
  if (pixels >= 1 && pixels <= kMaxImageSide) return {};
  return invalid("images of {} {} pixels; expected 1 to {}", name, pixels, kMaxImageSide);
}

Status check_normalisation(const Normalisation& how) {
  for (size_t c = 0; c < 3; ++c) {
    if (std::isfinite(how.mean[c]) && std::isfinite(how.std[c]) && how.std[c] > 0) continue;
    return invalid("mean {} and std {} of channel {}; both must be finite, std above 0", how.mean[c],
                   how.std[c], c);
  }
  return {};
}

int preset_resize(const Preset& preset, const Preprocess& how) {
  if (preset.share >= 1) return 0;
  return static_cast<int>(std::lround(std::max(how.height, how.width) / preset.share));
}

bool same_values(const Normalisation& a, const Normalisation& b, int channels) {
  return std::equal(a.mean.begin(), a.mean.begin() + channels, b.mean.begin()) &&
         std::equal(a.std.begin(), a.std.begin() + channels, b.std.begin());
}

Result<Tensor> to_grey(const Tensor& image) {
  LIMBER_ASSIGN(Tensor grey, Tensor::allocate({DType::kU8, Shape{height_of(image), width_of(image), 1}}));
  const uint8_t* rgb = image.data<uint8_t>().data();
  for (uint8_t& value : grey.data<uint8_t>()) {
    value = to_byte(luma(rgb));
    rgb += 3;
  }
  return grey;
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

}  // namespace

Status check_preprocess(const Preprocess& how) {
  LIMBER_TRY(check_side("height", how.height));
  LIMBER_TRY(check_side("width", how.width));
  LIMBER_TRY(check_normalisation(how.normalisation));
  if (how.channels != 1 && how.channels != 3)
    return invalid("images of {} channels; expected 1 or 3", how.channels);
  if (how.resize == 0) return {};
  if (how.resize < 0 || how.resize > kMaxImageSide) {
    return invalid("the shorter side scaled to {} pixels; expected {} to {}", how.resize,
                   std::max(how.height, how.width), kMaxImageSide);
  }
  if (how.resize >= std::max(how.height, how.width)) return {};
  return invalid(
      "a crop of {}x{} pixels is larger than the image it is cut out of, whose shorter side is scaled to {}; "
      "scale to {} or more, or crop at most {}",
      how.height, how.width, how.resize, std::max(how.height, how.width), how.resize);
}

std::span<const Preset> presets() { return kPresets; }

Result<Preset> find_preset(std::string_view name) {
  std::string known;
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", preset.name);
  }
  return error(Code::kNotFound, "no preprocessing is called '{}'; there are {}", name, known);
}

void use_preset(const Preset& preset, Preprocess& how) {
  how.normalisation = preset.normalisation;
  if (how.resize == 0) how.resize = preset_resize(preset, how);
}

std::string_view preset_name(const Preprocess& how) {
  for (const Preset& preset : kPresets) {
    if (same_values(preset.normalisation, how.normalisation, how.channels) &&
        how.resize == preset_resize(preset, how)) {
      return preset.name;
    }
  }
  return "custom";
}

std::string describe(const Preprocess& how) {
  const auto channels = [&](const std::array<float, 3>& x) {
    return fmt::format("{}", fmt::join(x.begin(), x.begin() + how.channels, ","));
  };
  std::string text = fmt::format("{}: {}x{}x{}", preset_name(how), how.channels, how.height, how.width);
  if (how.resize > 0) text += fmt::format(" from a shorter side of {}", how.resize);
  return text +
         fmt::format(", mean {}, std {}", channels(how.normalisation.mean), channels(how.normalisation.std));
}

Preprocessor::Preprocessor(const Preprocess& how) : how_(how) {
  for (size_t c = 0; c < 3; ++c) {
    for (size_t v = 0; v < 256; ++v) {
      tables_[c][v] = (static_cast<float>(v) / 255.F - how.normalisation.mean[c]) / how.normalisation.std[c];
    }
  }
}

Result<Preprocessor> Preprocessor::make(const Preprocess& how) {
  LIMBER_TRY(check_preprocess(how));
  return Preprocessor(how);
}

size_t Preprocessor::output_size() const {
  return static_cast<size_t>(how_.channels) * static_cast<size_t>(how_.height) *
         static_cast<size_t>(how_.width);
}

Result<Tensor> Preprocessor::with_channels(const Tensor& image) const {
  LIMBER_ASSERT(image.dtype() == DType::kU8 && image.shape().rank() == 3);
  LIMBER_ASSERT(channels_of(image) == 1 || channels_of(image) == 3);
  return how_.channels == 1 && channels_of(image) == 3 ? to_grey(image) : image;
}

Result<Tensor> Preprocessor::fit(const Tensor& image) const {
  const int64_t height = height_of(image), width = width_of(image);
  if (how_.resize > 0) return limber::resize_shorter(image, how_.resize);
  int64_t new_height = how_.height, new_width = how_.width;
  if (height * how_.width >= width * how_.height) {
    new_height = height * how_.width / width;
  } else {
    new_width = width * how_.height / height;
  }
  if (new_height > kMaxImageSide || new_width > kMaxImageSide) {
    return invalid("an image of {}x{} is too narrow to cover {}x{}", height, width, how_.height, how_.width);
  }
  return limber::resize(image, static_cast<int>(new_height), static_cast<int>(new_width));
}

void Preprocessor::write(const Tensor& image, const Window& window, const Tables& tables,
                         std::span<float> chw) const {
  LIMBER_ASSERT(chw.size() == output_size());
  const int64_t height = height_of(image), width = width_of(image), channels = channels_of(image);
  const uint8_t* pixels = image.data<uint8_t>().data();
  const int64_t first = std::clamp<int64_t>(-window.left, 0, how_.width);
  const int64_t last = std::clamp<int64_t>(width - window.left, first, how_.width);
  for (int64_t c = 0; c < how_.channels; ++c) {
    const auto& table = tables[static_cast<size_t>(c)];
    const uint8_t* channel = pixels + (channels == 3 ? c : 0);
    for (int64_t y = 0; y < how_.height; ++y) {
      float* out = chw.data() + (c * how_.height + y) * how_.width;
      const int64_t source = window.top + y;
      if (source < 0 || source >= height || last - first < how_.width) std::fill_n(out, how_.width, table[0]);
      if (source < 0 || source >= height) continue;
      const uint8_t* from = channel + (source * width + window.left + first) * channels;
      float* start = window.mirrored ? out + (how_.width - 1 - first) : out + first;
      write_row(from, channels, table, last - first, start, window.mirrored ? -1 : 1);
    }
  }
}

Status Preprocessor::apply(const Tensor& image, std::span<float> chw) const {
  LIMBER_ASSIGN(const Tensor input, with_channels(image));
  LIMBER_ASSIGN(const Tensor fitted, fit(input));
  // Half to even, as crop_centre rounds.
  const auto middle = [](int64_t slack) {
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(slack) / 2));
  };
  write(fitted, {middle(height_of(fitted) - how_.height), middle(width_of(fitted) - how_.width), false},
        tables_, chw);
  return {};
}

}  // namespace limber
