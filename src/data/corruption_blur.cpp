#include <algorithm>
#include <cmath>

#include "data/corruption_families.h"

namespace limber::corruptions {
namespace {

constexpr float kBlurReach = 4;  // sigmas

// An aperture whose edge is softened a little.
SquareFilter disk(float radius, float softness) {
  SquareFilter kernel;
  kernel.radius = std::max(8, static_cast<int>(radius));
  const int side = 2 * kernel.radius + 1;
  Field open(side, side);
  float sum = 0;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const int dy = y - kernel.radius, dx = x - kernel.radius;
      open.at(y, x) = static_cast<float>(dy * dy + dx * dx) <= radius * radius ? 1.F : 0.F;
      sum += open.at(y, x);
    }
  }
  for (float& value : open.values) value /= sum;
  kernel.weights = blurred(open, gaussian_taps(softness, radius <= 8 ? 1 : 2), Border::kMirror).values;
  return kernel;
}

void blur_all(Picture& picture, float sigma) {
  for (Field& plane : picture) plane = gaussian_blurred(plane, sigma, kBlurReach, Border::kNearest);
}

}  // namespace

void defocus_blur(Picture& picture, Degree degree) {
  struct Lens {
    float radius, softness;
  };
  constexpr Lens kSmall[] = {{0.3F, 0.4F}, {0.4F, 0.5F}, {0.5F, 0.6F}, {1, 0.2F}, {1.5F, 0.1F}};
  constexpr Lens kLarge[] = {{3, 0.1F}, {4, 0.5F}, {6, 0.5F}, {8, 0.5F}, {10, 0.5F}};
  const Lens& lens = degree.of(kSmall, kLarge);
  const SquareFilter kernel = disk(lens.radius, lens.softness);
  for (Field& plane : picture) plane = filtered(plane, kernel, Border::kMirror);
}

void glass_blur(Picture& picture, Degree degree, Random& random) {
  struct Pane {
    float sigma;
    int distance, times;
  };
  constexpr Pane kSmall[] = {{0.05F, 1, 1}, {0.25F, 1, 1}, {0.4F, 1, 1}, {0.25F, 1, 2}, {0.4F, 1, 2}};
  constexpr Pane kLarge[] = {{0.7F, 1, 2}, {0.9F, 2, 1}, {1, 2, 3}, {1.1F, 3, 2}, {1.5F, 4, 2}};
  const Pane& pane = degree.of(kSmall, kLarge);
  blur_all(picture, pane.sigma);
  const int height = picture[0].height, width = picture[0].width, d = pane.distance;
  for (int pass = 0; pass < pane.times; ++pass) {
    for (int y = height - d; y > d; --y) {
      for (int x = width - d; x > d; --x) {
        const int dx = static_cast<int>(random.below(static_cast<uint64_t>(2 * d))) - d;
        const int dy = static_cast<int>(random.below(static_cast<uint64_t>(2 * d))) - d;
        // The benchmark means to exchange the two and copies one, which is what published figures have.
        for (Field& plane : picture) plane.at(y, x) = plane.at(y + dy, x + dx);
      }
    }
  }
  blur_all(picture, pane.sigma);
}

void motion_blur(Picture& picture, Degree degree, Random& random) {
  struct Motion {
    int radius;
    float sigma;
  };
  constexpr Motion kSmall[] = {{6, 1}, {6, 1.5F}, {6, 2}, {8, 2}, {9, 2.5F}};
  constexpr Motion kLarge[] = {{10, 3}, {15, 5}, {15, 8}, {15, 12}, {20, 15}};
  const Motion& motion = degree.of(kSmall, kLarge);
  const double angle = random.uniform(-45, 45);
  for (Field& plane : picture) plane = motion_blurred(plane, motion.radius, motion.sigma, angle);
}

void zoom_blur(Picture& picture, Degree degree) {
  struct Zoom {
    double last, step;
  };
  constexpr Zoom kSmall[] = {{1.06, 0.01}, {1.11, 0.01}, {1.15, 0.01}, {1.20, 0.01}, {1.25, 0.01}};
  constexpr Zoom kLarge[] = {{1.11, 0.01}, {1.15, 0.01}, {1.20, 0.02}, {1.24, 0.02}, {1.30, 0.03}};
  const Zoom& zoom = degree.of(kSmall, kLarge);
  const int steps = static_cast<int>(std::lround((zoom.last - 1) / zoom.step));
  for (Field& plane : picture) {
    Field sum = plane;
    for (int i = 0; i <= steps; ++i) {
      const Field larger = zoomed(plane, 1 + i * zoom.step);
      for (size_t k = 0; k < sum.values.size(); ++k) sum.values[k] += larger.values[k];
    }
    for (float& value : sum.values) value /= static_cast<float>(steps + 2);
    plane = std::move(sum);
  }
}

void gaussian_blur(Picture& picture, Degree degree) {
  constexpr float kSmall[] = {0.4F, 0.6F, 0.7F, 0.8F, 1}, kLarge[] = {1, 2, 3, 4, 6};
  blur_all(picture, degree.of(kSmall, kLarge));
}

}  // namespace limber::corruptions
