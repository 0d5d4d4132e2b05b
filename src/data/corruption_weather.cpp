#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "data/canvas.h"
#include "data/corruption_families.h"

namespace limber::corruptions {
namespace {

Field normal_field(int height, int width, float mean, float deviation, Random& random) {
  Field field(height, width);
  for (float& value : field.values) value = mean + deviation * static_cast<float>(random.normal());
  return field;
}

Field grey_of(const Picture& picture) {
  Field grey(picture[0].height, picture[0].width);
  for (size_t i = 0; i < grey.values.size(); ++i)
    grey.values[i] =
        0.299F * picture[0].values[i] + 0.587F * picture[1].values[i] + 0.114F * picture[2].values[i];
  return grey;
}

// Clouds on a torus whose side is a power of two, by the diamond-square algorithm; in 0..1.
class Plasma {
 public:
  Plasma(int side, double decay, Random& random) : field_(side, side), random_(random) {
    for (int step = side; step >= 2; step /= 2) {
      squares(step);
      diamonds(step);
      wobble_ /= decay;
    }
    const float least = *std::min_element(field_.values.begin(), field_.values.end());
    const float range = std::max(field_.largest() - least, std::numeric_limits<float>::min());
    for (float& value : field_.values) value = (value - least) / range;
  }
  float at(int y, int x) const { return field_.at(y, x); }

 private:
  float around(int y, int x) const { return field_.at(y & (field_.height - 1), x & (field_.width - 1)); }
  float drawn(float sum) {
    return sum / 4 + static_cast<float>(wobble_ * random_.uniform(-wobble_, wobble_));
  }
  void squares(int step) {
    for (int y = 0; y < field_.height; y += step) {
      for (int x = 0; x < field_.width; x += step)
        field_.at(y + step / 2, x + step / 2) =
            drawn(around(y, x) + around(y + step, x) + around(y, x + step) + around(y + step, x + step));
    }
  }
  void diamond(int y, int x, int half) {
    field_.at(y, x) =
        drawn(around(y - half, x) + around(y + half, x) + around(y, x - half) + around(y, x + half));
  }
  void diamonds(int step) {
    const int half = step / 2;
    for (int y = 0; y < field_.height; y += step) {
      for (int x = 0; x < field_.width; x += step) diamond(y, x + half, half);
    }
    for (int y = 0; y < field_.height; y += step) {
      for (int x = 0; x < field_.width; x += step) diamond(y + half, x, half);
    }
  }

  Field field_;
  Random& random_;
  double wobble_ = 100;
};

// Where the picture is hit by drops: how far each is from the edge of one, embossed, in 0..1 of the most.
Field water(const Field& liquid) {
  constexpr float kFarthest = 20;  // pixels
  const int height = liquid.height, width = liquid.width;
  Field distance(height, width, kFarthest);
  const auto wet = [&](int y, int x) { return liquid.at(y, x) > 0; };
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool edge =
          (x + 1 < width && wet(y, x) != wet(y, x + 1)) || (y + 1 < height && wet(y, x) != wet(y + 1, x));
      if (edge) distance.at(y, x) = 0;
    }
  }
  const auto relax = [&](int y, int x, int dy, int dx, float step) {
    if (y + dy < 0 || y + dy >= height || x + dx < 0 || x + dx >= width) return;
    distance.at(y, x) = std::min(distance.at(y, x), distance.at(y + dy, x + dx) + step);
  };
  constexpr float kDiagonal = 1.4F;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x)
      relax(y, x, 0, -1, 1), relax(y, x, -1, 0, 1), relax(y, x, -1, -1, kDiagonal),
          relax(y, x, -1, 1, kDiagonal);
  }
  for (int y = height - 1; y >= 0; --y) {
    for (int x = width - 1; x >= 0; --x)
      relax(y, x, 0, 1, 1), relax(y, x, 1, 0, 1), relax(y, x, 1, 1, kDiagonal), relax(y, x, 1, -1, kDiagonal);
  }
  const SquareFilter mean{1, std::vector<float>(9, 1.F / 9)}, emboss{1, {-2, -1, 0, -1, 1, 1, 0, 1, 2}};
  Field level = filtered(distance, mean, Border::kMirror);
  // Equal shares of the pixels at every level.
  std::vector<float> sorted = level.values;
  std::sort(sorted.begin(), sorted.end());
  for (float& value : level.values)
    value = static_cast<float>(std::upper_bound(sorted.begin(), sorted.end(), value) - sorted.begin()) /
            static_cast<float>(sorted.size());
  level = filtered(filtered(level, emboss, Border::kMirror), mean, Border::kMirror);
  for (size_t i = 0; i < level.values.size(); ++i)
    level.values[i] = std::max(0.F, level.values[i] * liquid.values[i]);
  const float most = std::max(level.largest(), std::numeric_limits<float>::min());
  for (float& value : level.values) value /= most;
  return level;
}

}  // namespace

void snow(Picture& picture, Degree degree, Random& random) {
  struct Snow {
    float mean, deviation;
    double zoom;
    float threshold;
    int radius;
    float sigma, share;
  };
  constexpr Snow kSmall[] = {{.1F, .2F, 1, .6F, 8, 3, .95F},
                             {.1F, .2F, 1, .5F, 10, 4, .9F},
                             {.15F, .3F, 1.75, .55F, 10, 4, .9F},
                             {.25F, .3F, 2.25, .6F, 12, 6, .85F},
                             {.3F, .3F, 1.25, .65F, 14, 12, .8F}};
  constexpr Snow kLarge[] = {{.1F, .3F, 3, .5F, 10, 4, .8F},
                             {.2F, .3F, 2, .5F, 12, 4, .7F},
                             {.55F, .3F, 4, .9F, 12, 8, .7F},
                             {.55F, .3F, 4.5, .85F, 12, 8, .65F},
                             {.55F, .3F, 2.5, .85F, 12, 12, .55F}};
  const Snow& how = degree.of(kSmall, kLarge);
  Field flakes =
      zoomed(normal_field(picture[0].height, picture[0].width, how.mean, how.deviation, random), how.zoom);
  for (float& value : flakes.values) value = value < how.threshold ? 0.F : std::min(value, 1.F);
  flakes = motion_blurred(flakes, how.radius, how.sigma, random.uniform(-135, -45));
  const Field grey = grey_of(picture);
  const size_t count = grey.values.size();
  for (Field& plane : picture) {
    for (size_t i = 0; i < count; ++i) {
      const float white = std::max(plane.values[i], 1.5F * grey.values[i] + 0.5F);
      plane.values[i] = how.share * plane.values[i] + (1 - how.share) * white + flakes.values[i] +
                        flakes.values[count - 1 - i];
    }
  }
}

void frost(Picture& picture, Degree degree, Random& random) {
  struct Frost {
    float picture, ice;
  };
  constexpr Frost kSmall[] = {{1, .2F}, {1, .3F}, {.9F, .4F}, {.85F, .4F}, {.75F, .45F}};
  constexpr Frost kLarge[] = {{1, .4F}, {.8F, .6F}, {.7F, .7F}, {.65F, .7F}, {.6F, .75F}};
  const Frost& how = degree.of(kSmall, kLarge);
  const ValueNoise coarse(random.next()), fine(random.next());
  const int height = picture[0].height, width = picture[0].width;
  const float unit = static_cast<float>(std::min(height, width)) / 32;
  const float angle = uniform(random, 0, 3.14159F), cosine = std::cos(angle), sine = std::sin(angle);
  const float drift_y = uniform(random, 0, 1000), drift_x = uniform(random, 0, 1000);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const float u = static_cast<float>(x) / unit, v = static_cast<float>(y) / unit;
      const float along = u * cosine + v * sine, across = v * cosine - u * sine;
      // Needles: ridges much longer than wide, over patches.
      const float ridge = 1 - std::abs(2 * fine(along / 7 + drift_x, across / 1.6F + drift_y) - 1);
      const float patch = coarse(u / 11 + drift_y, v / 11 + drift_x);
      const float ice = std::clamp(0.15F + 0.55F * patch + 0.5F * ridge * ridge * patch, 0.F, 1.F);
      constexpr float kTint[] = {0.92F, 0.97F, 1};
      for (size_t c = 0; c < 3; ++c)
        picture[c].at(y, x) = how.picture * picture[c].at(y, x) + how.ice * kTint[c] * ice;
    }
  }
}

void fog(Picture& picture, Degree degree, Random& random) {
  struct Fog {
    float amount;
    double decay;
  };
  constexpr Fog kSmall[] = {{.2F, 3}, {.5F, 3}, {.75F, 2.5}, {1, 2}, {1.5F, 1.75}};
  constexpr Fog kLarge[] = {{1.5F, 2}, {2, 2}, {2.5F, 1.7}, {2.5F, 1.5}, {3, 1.4}};
  const Fog& how = degree.of(kSmall, kLarge);
  const int height = picture[0].height, width = picture[0].width;
  const auto side = std::bit_ceil(static_cast<unsigned>(std::max({height, width, 2})));
  const Plasma plasma(static_cast<int>(side), how.decay, random);
  float brightest = 0;
  for (const Field& plane : picture) brightest = std::max(brightest, plane.largest());
  for (Field& plane : picture) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x)
        plane.at(y, x) =
            (plane.at(y, x) + how.amount * plasma.at(y, x)) * brightest / (brightest + how.amount);
    }
  }
}

void spatter(Picture& picture, Degree degree, Random& random) {
  struct Spatter {
    float mean, deviation, sigma, threshold, amount;
    bool mud;
  };
  constexpr Spatter kSmall[] = {{.62F, .1F, .7F, .7F, .5F, false},
                                {.65F, .1F, .8F, .7F, .5F, false},
                                {.65F, .3F, 1, .69F, .5F, false},
                                {.65F, .1F, .7F, .69F, .6F, true},
                                {.65F, .1F, .5F, .68F, .6F, true}};
  constexpr Spatter kLarge[] = {{.65F, .3F, 4, .69F, .6F, false},
                                {.65F, .3F, 3, .68F, .6F, false},
                                {.65F, .3F, 2, .68F, .5F, false},
                                {.65F, .3F, 1, .65F, 1.5F, true},
                                {.67F, .4F, 1, .65F, 1.5F, true}};
  constexpr float kWater[] = {175.F / 255, 238.F / 255, 238.F / 255},
                  kMud[] = {63.F / 255, 42.F / 255, 20.F / 255};
  const Spatter& how = degree.of(kSmall, kLarge);
  Field liquid =
      gaussian_blurred(normal_field(picture[0].height, picture[0].width, how.mean, how.deviation, random),
                       how.sigma, 4, Border::kNearest);
  for (float& value : liquid.values) value = value < how.threshold ? 0.F : value;
  if (!how.mud) {
    const Field drops = water(liquid);
    for (size_t c = 0; c < 3; ++c) {
      for (size_t i = 0; i < drops.values.size(); ++i)
        picture[c].values[i] += how.amount * drops.values[i] * kWater[c];
    }
    return;
  }
  for (float& value : liquid.values) value = value > how.threshold ? 1.F : 0.F;
  const Field mud = gaussian_blurred(liquid, how.amount, 4, Border::kNearest);
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = 0; i < mud.values.size(); ++i) {
      const float cover = mud.values[i] < 0.8F ? 0.F : mud.values[i];
      picture[c].values[i] = picture[c].values[i] * (1 - cover) + kMud[c] * cover;
    }
  }
}

}  // namespace limber::corruptions
