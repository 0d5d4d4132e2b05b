#include "data/corruptions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "data/picture.h"
#include "data/synthetic.h"
#include "tests/data/files.h"

namespace limber {
namespace {

Tensor drawn(int side, size_t index = 3) {
  const auto data = open_synthetic({.size = side, .count = 20});
  return (*data)->get(index)->image;
}

Tensor flat(int side, uint8_t value, int channels = 3) {
  Tensor image = *Tensor::allocate({DType::kU8, Shape{side, side, channels}});
  std::fill(image.data<uint8_t>().begin(), image.data<uint8_t>().end(), value);
  return image;
}

Tensor corrupted(const Tensor& image, Corruption kind, int strength, uint64_t seed = 1) {
  auto made = apply_corruption(image, kind, strength, seed);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *std::move(made);
}

std::vector<uint8_t> values_of(const Tensor& image) {
  const auto data = image.data<uint8_t>();
  return {data.begin(), data.end()};
}

double mean_of(const Tensor& image) {
  double sum = 0;
  for (const uint8_t value : image.data<uint8_t>()) sum += value;
  return sum / static_cast<double>(image.elements());
}

double deviation_of(const Tensor& image) {
  const double mean = mean_of(image);
  double sum = 0;
  for (const uint8_t value : image.data<uint8_t>()) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(image.elements()));
}

double mean_change(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.elements(); ++i)
    sum += std::abs(element_as_double(a, i) - element_as_double(b, i));
  return sum / static_cast<double>(a.elements());
}

TEST(Corruptions, NamesAreUniqueAndFoundAgain) {
  std::set<std::string> names;
  for (int i = 0; i < kCorruptions; ++i) {
    const auto kind = static_cast<Corruption>(i);
    names.insert(corruption_name(kind));
    EXPECT_EQ(find_corruption(corruption_name(kind)), kind);
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kCorruptions));
  EXPECT_FALSE(find_corruption("gaussian"));
}

TEST(Corruptions, EveryFamilyRepeatsForASeedAndChangesTheImage) {
  for (const int side : {16, 32, 100}) {
    const Tensor image = drawn(side);
    for (int i = 0; i < kCorruptions; ++i) {
      for (int strength = 1; strength <= kStrengths; ++strength) {
        const auto kind = static_cast<Corruption>(i);
        const Tensor once = corrupted(image, kind, strength);
        EXPECT_EQ(once.type().to_string(), image.type().to_string());
        EXPECT_EQ(values_of(once), values_of(corrupted(image, kind, strength))) << corruption_name(kind);
        EXPECT_NE(values_of(once), values_of(image)) << corruption_name(kind) << strength;
      }
    }
  }
}

TEST(Corruptions, OddShapesAreFine) {
  Tensor image = *Tensor::allocate({DType::kU8, Shape{1, 7, 1}});
  std::fill(image.data<uint8_t>().begin(), image.data<uint8_t>().end(), uint8_t{90});
  for (int i = 0; i < kCorruptions; ++i) {
    for (int strength = 1; strength <= kStrengths; ++strength)
      EXPECT_EQ(corrupted(image, static_cast<Corruption>(i), strength).type().to_string(), "u8[1,7,3]");
  }
}

// What is random in one family differs between seeds.
TEST(Corruptions, SeedsMatterWhereChanceDoes) {
  const Tensor image = drawn(32);
  const std::set<Corruption> fixed = {
      Corruption::kDefocusBlur, Corruption::kZoomBlur, Corruption::kBrightness,   Corruption::kContrast,
      Corruption::kPixelate,    Corruption::kJpeg,     Corruption::kGaussianBlur, Corruption::kSaturate};
  for (int i = 0; i < kCorruptions; ++i) {
    const auto kind = static_cast<Corruption>(i);
    const bool same = values_of(corrupted(image, kind, 3, 1)) == values_of(corrupted(image, kind, 3, 2));
    EXPECT_EQ(same, fixed.count(kind) > 0) << corruption_name(kind);
  }
}

TEST(Corruptions, StrengthGrows) {
  for (int i = 0; i < kBenchmarkCorruptions; ++i) {
    const auto kind = static_cast<Corruption>(i);
    // Elastic transformations change their nature with the strength.
    if (kind == Corruption::kElastic) continue;
    double weak = 0, strong = 0;
    for (size_t k = 0; k < 20; ++k) {
      const Tensor image = drawn(32, k);
      weak += mean_change(image, corrupted(image, kind, 1, k));
      strong += mean_change(image, corrupted(image, kind, 5, k));
    }
    EXPECT_GT(strong, 1.2 * weak) << corruption_name(kind);
  }
}

TEST(Corruptions, NoiseHasTheSpreadOfItsFormula) {
  const double grey = 100.0 / 255;
  const Tensor small = flat(64, 100), large = flat(128, 100);
  const double kSmall[] = {.04, .06, .08, .09, .10}, kShot[] = {500, 250, 100, 75, 50};
  const double kImpulse[] = {.01, .02, .03, .05, .07}, kSpeckle[] = {.06, .1, .12, .16, .2};
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(deviation_of(corrupted(small, Corruption::kGaussianNoise, i + 1)), 255 * kSmall[i], 0.6);
    const Tensor shot = corrupted(small, Corruption::kShotNoise, i + 1);
    EXPECT_NEAR(deviation_of(shot), 255 * std::sqrt(grey / kShot[i]), 0.6) << i;
    EXPECT_NEAR(mean_of(shot), 100, 1) << i;  // fractions are dropped
    EXPECT_NEAR(deviation_of(corrupted(small, Corruption::kSpeckleNoise, i + 1)), 255 * grey * kSpeckle[i],
                0.4);
    int black = 0, white = 0;
    const Tensor impulse = corrupted(small, Corruption::kImpulseNoise, i + 1);
    for (const uint8_t value : impulse.data<uint8_t>()) black += value == 0, white += value == 255;
    EXPECT_NEAR((black + white) / static_cast<double>(small.elements()), kImpulse[i], 0.006);
    EXPECT_NEAR(black, white, 5 * std::sqrt(black + white));
  }
  // The constants of large images.
  EXPECT_NEAR(deviation_of(corrupted(large, Corruption::kGaussianNoise, 1)), 255 * 0.08, 0.6);
  EXPECT_NEAR(deviation_of(corrupted(large, Corruption::kShotNoise, 2)), 255 * std::sqrt(grey / 25), 0.6);
  EXPECT_NEAR(deviation_of(corrupted(large, Corruption::kShotNoise, 3)), 255 * std::sqrt(grey / 12), 1);
  // 3 photons for white: of 20 / 255 there is often none.
  int none = 0;
  const Tensor dark = corrupted(flat(128, 20), Corruption::kShotNoise, 5);
  for (const uint8_t value : dark.data<uint8_t>()) none += value == 0;
  EXPECT_NEAR(none / static_cast<double>(dark.elements()), std::exp(-3 * 20.0 / 255), 0.01);
}

TEST(Corruptions, BlursKeepTheMeanAndAFlatImage) {
  const Tensor plain = flat(32, 77), image = drawn(32);
  for (const Corruption kind :
       {Corruption::kDefocusBlur, Corruption::kGlassBlur, Corruption::kMotionBlur, Corruption::kZoomBlur,
        Corruption::kGaussianBlur, Corruption::kElastic, Corruption::kPixelate}) {
    for (int strength = 1; strength <= kStrengths; ++strength) {
      EXPECT_LE(mean_change(corrupted(plain, kind, strength), plain), 1) << corruption_name(kind) << strength;
      EXPECT_NEAR(mean_of(corrupted(image, kind, strength)), mean_of(image), 9)
          << corruption_name(kind) << strength;
    }
  }
}

TEST(Corruptions, ColoursFollowTheirFormulas) {
  Tensor image = flat(4, 0);
  const uint8_t orange[] = {200, 100, 50};
  for (int64_t i = 0; i < image.elements(); ++i)
    image.data<uint8_t>()[static_cast<size_t>(i)] = orange[i % 3];
  // Value 200 + 0.2 * 255 = 251: hue and saturation stay, so that all grow alike.
  const auto bright = values_of(corrupted(image, Corruption::kBrightness, 4));
  EXPECT_NEAR(bright[0], 251, 1);
  EXPECT_NEAR(bright[1], 125.5, 1);
  EXPECT_NEAR(bright[2], 62.75, 1);
  // Saturation 0.75 * 0.3: the smallest is 200 * (1 - 0.225).
  const auto pale = values_of(corrupted(image, Corruption::kSaturate, 1));
  EXPECT_NEAR(pale[0], 200, 1);
  EXPECT_NEAR(pale[2], 155, 1);
  const auto black = values_of(corrupted(flat(4, 0), Corruption::kBrightness, 5));
  EXPECT_NEAR(black[0], 76, 1);
  Tensor halves = flat(4, 50);
  std::fill(halves.data<uint8_t>().begin(), halves.data<uint8_t>().begin() + 24, uint8_t{150});
  const auto dull = values_of(corrupted(halves, Corruption::kContrast, 3));
  EXPECT_NEAR(dull[0], 100 + 0.4 * 50, 1);
  EXPECT_NEAR(dull[47], 100 - 0.4 * 50, 1);
}

TEST(Corruptions, PixelsBecomeBoxes) {
  // 128 pixels at strength 2 are halved: every box of two by two has one value.
  const Tensor image = drawn(128);
  const auto boxes = values_of(corrupted(image, Corruption::kPixelate, 2)), before = values_of(image);
  const auto at = [&](const std::vector<uint8_t>& of, size_t y, size_t x) { return of[(y * 128 + x) * 3]; };
  for (size_t y = 0; y < 128; y += 2) {
    for (size_t x = 0; x < 128; x += 2) {
      EXPECT_EQ(at(boxes, y, x), at(boxes, y + 1, x + 1));
      const int sum =
          at(before, y, x) + at(before, y, x + 1) + at(before, y + 1, x) + at(before, y + 1, x + 1);
      EXPECT_NEAR(at(boxes, y, x), sum / 4.0, 1.01);
    }
  }
}

TEST(Corruptions, FiltersAgreeWithTheirDefinitions) {
  Field field(5, 7);
  for (size_t i = 0; i < field.values.size(); ++i) field.values[i] = static_cast<float>((i * 37) % 11);
  // A filter with two different axes, by hand.
  const SquareFilter kernel{1, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  const Field out = filtered(field, kernel, Border::kMirror);
  float by_hand = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx)
      by_hand += static_cast<float>((dy + 1) * 3 + dx + 2) * field.at(std::abs(dy), std::abs(dx));
  }
  EXPECT_FLOAT_EQ(out.at(0, 0), by_hand);
  // Edges, written out.
  const int nearest[] = {0, 0, 0, 1, 2, 3, 3, 3}, reflect[] = {1, 0, 0, 1, 2, 3, 3, 2},
            mirror[] = {2, 1, 0, 1, 2, 3, 2, 1};
  for (int i = -2; i < 6; ++i) {
    EXPECT_EQ(inside(i, 4, Border::kNearest), nearest[i + 2]);
    EXPECT_EQ(inside(i, 4, Border::kReflect), reflect[i + 2]);
    EXPECT_EQ(inside(i, 4, Border::kMirror), mirror[i + 2]);
  }
  // A blur in one pass is the filter with the product of the taps.
  const auto taps = gaussian_taps(0.8F, 1);
  SquareFilter product{1, {}};
  for (const float a : taps) {
    for (const float b : taps) product.weights.push_back(a * b);
  }
  const Field fast = blurred(field, taps, Border::kNearest),
              slow = filtered(field, product, Border::kNearest);
  for (size_t i = 0; i < fast.values.size(); ++i) EXPECT_NEAR(fast.values[i], slow.values[i], 1e-4);
}

}  // namespace
}  // namespace limber
