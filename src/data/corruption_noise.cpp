#include <algorithm>
#include <array>
#include <cmath>

#include "data/corruption_families.h"

namespace limber::corruptions {
namespace {

// Of whole numbers up to 1023: more than ten standard deviations above the largest mean that is drawn.
double log_factorial(int k) {
  static const auto table = [] {
    std::array<double, 1024> logs{};
    for (size_t i = 1; i < logs.size(); ++i) logs[i] = logs[i - 1] + std::log(static_cast<double>(i));
    return logs;
  }();
  return table[static_cast<size_t>(std::min(k, 1023))];
}

// Counts up: right for any mean, fast for small ones.
int small_poisson(double mean, Random& random) {
  const double limit = std::exp(-mean);
  int count = 0;
  for (double product = random.uniform(); product > limit; product *= random.uniform()) ++count;
  return count;
}

// Hörmann's transformed rejection (1993). REQUIRES: mean >= 10
int large_poisson(double mean, Random& random) {
  const double root = std::sqrt(mean), log_mean = std::log(mean);
  const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), quick = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = random.uniform() - 0.5, v = 1 - random.uniform();
    const double edge = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / edge + b) * u + mean + 0.43);
    if (edge >= 0.07 && v <= quick) return static_cast<int>(k);
    if (k < 0 || k > 1023 || (edge < 0.013 && v > edge)) continue;
    if (std::log(v * inverse_alpha / (a / (edge * edge) + b)) <=
        k * log_mean - mean - log_factorial(static_cast<int>(k)))
      return static_cast<int>(k);
  }
}

int poisson(double mean, Random& random) {
  return mean < 10 ? small_poisson(mean, random) : large_poisson(mean, random);
}

template <typename Change>
void each_value(Picture& picture, const Change& change) {
  for (Field& plane : picture) {
    for (float& value : plane.values) change(value);
  }
}

}  // namespace

void gaussian_noise(Picture& picture, Degree degree, Random& random) {
  constexpr double kSmall[] = {0.04, 0.06, 0.08, 0.09, 0.10}, kLarge[] = {0.08, 0.12, 0.18, 0.26, 0.38};
  const double deviation = degree.of(kSmall, kLarge);
  each_value(picture, [&](float& value) { value += static_cast<float>(deviation * random.normal()); });
}

void shot_noise(Picture& picture, Degree degree, Random& random) {
  constexpr double kSmall[] = {500, 250, 100, 75, 50}, kLarge[] = {60, 25, 12, 5, 3};
  const double photons = degree.of(kSmall, kLarge);
  each_value(picture, [&](float& value) {
    value = static_cast<float>(poisson(static_cast<double>(value) * photons, random) / photons);
  });
}

void impulse_noise(Picture& picture, Degree degree, Random& random) {
  constexpr double kSmall[] = {0.01, 0.02, 0.03, 0.05, 0.07}, kLarge[] = {0.03, 0.06, 0.09, 0.17, 0.27};
  const double share = degree.of(kSmall, kLarge);
  each_value(picture, [&](float& value) {
    if (random.uniform() < share) value = random.uniform() < 0.5 ? 0.F : 1.F;
  });
}

void speckle_noise(Picture& picture, Degree degree, Random& random) {
  constexpr double kSmall[] = {0.06, 0.10, 0.12, 0.16, 0.20}, kLarge[] = {0.15, 0.20, 0.35, 0.45, 0.60};
  const double deviation = degree.of(kSmall, kLarge);
  each_value(picture,
             [&](float& value) { value += value * static_cast<float>(deviation * random.normal()); });
}

}  // namespace limber::corruptions
