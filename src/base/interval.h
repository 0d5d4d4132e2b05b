// How far a share that was found on a sample may be from the truth.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace limber {

struct Interval {
  double low = 0, high = 1;

  double width() const { return high - low; }
};

// The 95 % interval of a share of `count` independent ones, after Wilson: unlike the normal approximation it
// also holds for few of them and for shares near 0 and 1. Nothing is known of none.
inline Interval interval_of(double share, int64_t count) {
  if (count <= 0) return {};
  constexpr double z = 1.959963984540054;  // quantile of the normal distribution that leaves 2.5 % above
  const auto n = static_cast<double>(count);
  const double middle = share + z * z / (2 * n);
  const double reach = z * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  const double scale = 1 / (1 + z * z / n);
  return {std::max(0.0, scale * (middle - reach)), std::min(1.0, scale * (middle + reach))};
}

}  // namespace limber
