#include <algorithm>
#include <cmath>

#include "data/corruption_families.h"
#include "data/decoders.h"
#include "data/encode_jpeg.h"

namespace limber::corruptions {
namespace {

struct Hsv {
  float hue, saturation, value;  // hue in sixths of the circle
};

Hsv to_hsv(float r, float g, float b) {
  const float most = std::max({r, g, b}), range = most - std::min({r, g, b});
  if (range <= 0) return {0, 0, most};
  float hue = most == r ? (g - b) / range : most == g ? 2 + (b - r) / range : 4 + (r - g) / range;
  if (hue < 0) hue += 6;
  return {hue, range / most, most};
}

float from_hsv(const Hsv& of, float offset) {  // offset: 5 red, 3 green, 1 blue
  const float k = std::fmod(offset + of.hue, 6.F);
  return of.value - of.value * of.saturation * std::clamp(std::min(k, 4 - k), 0.F, 1.F);
}

template <typename Change>
void each_hsv(Picture& picture, const Change& change) {
  for (size_t i = 0; i < picture[0].values.size(); ++i) {
    Hsv hsv = to_hsv(picture[0].values[i], picture[1].values[i], picture[2].values[i]);
    change(hsv);
    picture[0].values[i] = from_hsv(hsv, 5);
    picture[1].values[i] = from_hsv(hsv, 3);
    picture[2].values[i] = from_hsv(hsv, 1);
  }
}

// x' = a x + b y + c, y' = d x + e y + f.
struct Affine {
  double a, b, c, d, e, f;
};

struct Point {
  double x, y;
};

// What takes each of three points to its counterpart.
Affine affine_through(const Point (&from)[3], const Point (&to)[3]) {
  const double x1 = from[1].x - from[0].x, y1 = from[1].y - from[0].y;
  const double x2 = from[2].x - from[0].x, y2 = from[2].y - from[0].y;
  const double determinant = x1 * y2 - x2 * y1;
  const auto solve = [&](double u0, double u1, double u2, double& gx, double& gy, double& shift) {
    gx = ((u1 - u0) * y2 - (u2 - u0) * y1) / determinant;
    gy = ((u2 - u0) * x1 - (u1 - u0) * x2) / determinant;
    shift = u0 - gx * from[0].x - gy * from[0].y;
  };
  Affine map{};
  solve(to[0].x, to[1].x, to[2].x, map.a, map.b, map.c);
  solve(to[0].y, to[1].y, to[2].y, map.d, map.e, map.f);
  return map;
}

// Moved so that three points round the middle move by up to `jitter` pixels.
void jitter_affinely(Picture& picture, double jitter, Random& random) {
  const int height = picture[0].height, width = picture[0].width;
  const double x = width / 2, y = height / 2, third = std::min(height, width) / 3;
  if (third < 1) return;
  const Point before[3] = {{x + third, y + third}, {x + third, y - third}, {x - third, y - third}};
  Point after[3];
  for (int i = 0; i < 3; ++i)
    after[i] = {before[i].x + random.uniform(-jitter, jitter), before[i].y + random.uniform(-jitter, jitter)};
  const Affine back = affine_through(after, before);
  for (Field& plane : picture) {
    Field moved(height, width);
    for (int row = 0; row < height; ++row) {
      for (int column = 0; column < width; ++column)
        moved.at(row, column) =
            sampled(plane, static_cast<float>(back.d * column + back.e * row + back.f),
                    static_cast<float>(back.a * column + back.b * row + back.c), Border::kMirror);
    }
    plane = std::move(moved);
  }
}

Field displacement(int height, int width, float amount, float sigma, Random& random) {
  Field field(height, width);
  for (float& value : field.values) value = static_cast<float>(random.uniform(-1, 1));
  field = gaussian_blurred(field, sigma, 3, Border::kReflect);
  for (float& value : field.values) value *= amount;
  return field;
}

}  // namespace

void brightness(Picture& picture, Degree degree) {
  constexpr float kSmall[] = {.05F, .1F, .15F, .2F, .3F}, kLarge[] = {.1F, .2F, .3F, .4F, .5F};
  const float more = degree.of(kSmall, kLarge);
  each_hsv(picture, [&](Hsv& hsv) { hsv.value = std::min(1.F, hsv.value + more); });
}

void saturate(Picture& picture, Degree degree) {
  struct Line {
    float factor, more;
  };
  constexpr Line kSmall[] = {{.3F, 0}, {.1F, 0}, {1.5F, 0}, {2, .1F}, {2.5F, .2F}};
  constexpr Line kLarge[] = {{.3F, 0}, {.1F, 0}, {2, 0}, {5, .1F}, {20, .2F}};
  const Line& line = degree.of(kSmall, kLarge);
  each_hsv(picture, [&](Hsv& hsv) {
    hsv.saturation = std::clamp(hsv.saturation * line.factor + line.more, 0.F, 1.F);
  });
}

void contrast(Picture& picture, Degree degree) {
  constexpr float kSmall[] = {.75F, .5F, .4F, .3F, .15F}, kLarge[] = {.4F, .3F, .2F, .1F, .05F};
  const float share = degree.of(kSmall, kLarge);
  for (Field& plane : picture) {
    double sum = 0;
    for (const float value : plane.values) sum += static_cast<double>(value);
    const auto mean = static_cast<float>(sum / static_cast<double>(plane.values.size()));
    for (float& value : plane.values) value = (value - mean) * share + mean;
  }
}

void elastic(Picture& picture, Degree degree, Random& random) {
  struct Elastic {
    float amount, sigma;
    double jitter;
  };
  constexpr Elastic kSmall[] = {
      {0, 0, 2.56}, {1.6F, 6.4F, 2.24}, {2.56F, 1.92F, 1.92}, {3.2F, 1.28F, 1.6}, {3.2F, .96F, .96}};
  constexpr Elastic kLarge[] = {{488, 170.8F, 24.4},
                                {488, 19.52F, 48.8},
                                {12.2F, 2.44F, 4.88},
                                {17.08F, 2.44F, 4.88},
                                {29.28F, 2.44F, 4.88}};
  const Elastic& how = degree.of(kSmall, kLarge);
  jitter_affinely(picture, how.jitter, random);
  if (how.amount <= 0) return;
  const int height = picture[0].height, width = picture[0].width;
  const Field dx = displacement(height, width, how.amount, how.sigma, random);
  const Field dy = displacement(height, width, how.amount, how.sigma, random);
  for (Field& plane : picture) {
    Field moved(height, width);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x)
        moved.at(y, x) = sampled(plane, static_cast<float>(y) + dy.at(y, x),
                                 static_cast<float>(x) + dx.at(y, x), Border::kReflect);
    }
    plane = std::move(moved);
  }
}

void pixelate(Picture& picture, Degree degree) {
  constexpr double kSmall[] = {.95, .9, .85, .75, .65}, kLarge[] = {.6, .5, .4, .3, .25};
  const double share = degree.of(kSmall, kLarge);
  for (Field& plane : picture) {
    const int height = plane.height, width = plane.width;
    const Field few = box_resized(plane, std::max(1, static_cast<int>(height * share)),
                                  std::max(1, static_cast<int>(width * share)));
    plane = box_resized(few, height, width);
  }
}

Status jpeg(Picture& picture, Degree degree) {
  constexpr int kSmall[] = {80, 65, 58, 50, 40}, kLarge[] = {25, 18, 15, 10, 7};
  LIMBER_ASSIGN(const Tensor image, to_image(picture));
  LIMBER_ASSIGN(const std::string file, encode_jpeg(image, degree.of(kSmall, kLarge)));
  LIMBER_ASSIGN(const Decoded decoded, decode_jpeg(std::as_bytes(std::span(file))));
  picture = to_picture(decoded.image);
  return {};
}

}  // namespace limber::corruptions
