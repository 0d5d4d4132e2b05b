// Domain shifts: what the world does to images after a model was trained.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace limber {

enum class ShiftKind : uint8_t {
  kNight,      // dark and bluish, with one lamp and sensor noise
  kFog,        // drifts of grey
  kRain,       // slanted streaks, less light
  kBlur,       // out of focus
  kNoise,      // Gaussian, salt and pepper
  kInvert,     // the brighter part inverted; all of it at strength 1
  kTexture,    // stripes, squares or dots over everything
  kViewpoint,  // turned, tilted and nearer or farther
};
inline constexpr int kShiftKinds = 8;
const char* shift_name(ShiftKind kind);

struct Shift {
  ShiftKind kind = ShiftKind::kNight;
  double strength = 1;  // above 0, up to 1: strong, but a person still recognises most images
};

// "night,fog=0.5".
Result<std::vector<Shift>> parse_shifts(std::string_view text);
std::string format_shifts(const std::vector<Shift>& shifts);

// u8[H,W,3] -> the same type, one shift after the other. Repeats for a seed.
Result<Tensor> apply_shifts(const Tensor& image, const std::vector<Shift>& shifts, uint64_t seed);

// `inner` seen through shifts that are drawn from (seed, index). Grey images become RGB.
std::unique_ptr<Dataset> shift_dataset(std::shared_ptr<const Dataset> inner, std::vector<Shift> shifts,
                                       uint64_t seed);

}  // namespace limber
