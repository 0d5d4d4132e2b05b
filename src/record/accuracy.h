// Shares of images, and how far they can be trusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/interval.h"

namespace limber {

// Where the true share lies with 95 % confidence when `correct` of `images` are right: Wilson's score
// interval, which holds also for few images and for shares near 0 and 1, where the usual one is too narrow.
// REQUIRES: 0 <= correct <= images. Without images it is all of 0 to 1.
Interval accuracy_interval(int64_t correct, int64_t images);

// From here on, in points, an interval is worth its place in a text: from about 1500 images on it is
// narrower.
inline constexpr double kWidePoints = 5;

// "91.25 % of 8000 test images", and where the interval is wide "97.5 % of 40 test images (87.1 to 99.6 %)".
// `which` says which images they are: "test", "held out", "training"; may be empty.
std::string accuracy_text(int64_t correct, int64_t images, std::string_view which);

}  // namespace limber
