// What cameras, lenses, weather and files do to images, at five strengths: the families of the usual
// robustness benchmarks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "data/dataset.h"

namespace limber {

enum class Corruption : uint8_t {
  kGaussianNoise,
  kShotNoise,
  kImpulseNoise,
  kDefocusBlur,
  kGlassBlur,
  kMotionBlur,
  kZoomBlur,
  kSnow,
  kFrost,
  kFog,
  kBrightness,
  kContrast,
  kElastic,
  kPixelate,
  kJpeg,
  // Four more, which benchmarks keep for choosing settings.
  kSpeckleNoise,
  kGaussianBlur,
  kSpatter,
  kSaturate,
};
inline constexpr int kCorruptions = 19;
inline constexpr int kBenchmarkCorruptions = 15;  // the first ones
inline constexpr int kStrengths = 5;

const char* corruption_name(Corruption kind);  // "gaussian-noise"
std::optional<Corruption> find_corruption(std::string_view name);

// Images whose shorter side has fewer pixels than this get the constants that are usual for 32 pixels, all
// others those for 224: the geometric mean of the two.
inline constexpr int kLargeImageSide = 85;

// u8[H,W,3] or u8[H,W,1] -> u8[H,W,3]. Repeats for a seed. Frost differs from the benchmarks, which lay
// photographs of ice over images: here the ice is drawn. REQUIRES: 1 <= strength <= kStrengths
Result<Tensor> apply_corruption(const Tensor& image, Corruption kind, int strength, uint64_t seed);

// `inner` as it is after the corruption, drawn from (seed, index).
std::unique_ptr<Dataset> corrupt_dataset(std::shared_ptr<const Dataset> inner, Corruption kind, int strength,
                                         uint64_t seed);

}  // namespace limber
