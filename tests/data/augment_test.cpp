#include "data/augment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "tests/data/files.h"

namespace limber {
namespace {

// Pixel (y, x) of channel c is 16 * y + x, plus 100 for c = 1.
Tensor chart(int64_t height, int64_t width, int64_t channels = 3) {
  Tensor image = *Tensor::allocate({DType::kU8, Shape{height, width, channels}});
  for (int64_t i = 0; i < image.elements(); ++i) {
    const int64_t pixel = i / channels;
    image.data<uint8_t>()[static_cast<size_t>(i)] =
        static_cast<uint8_t>(16 * (pixel / width) + pixel % width + (i % channels == 1 ? 100 : 0));
  }
  return image;
}

Tensor flat(int64_t side, uint8_t red, uint8_t green, uint8_t blue) {
  Tensor image = *Tensor::allocate({DType::kU8, Shape{side, side, 3}});
  const uint8_t rgb[] = {red, green, blue};
  for (size_t i = 0; i < image.data<uint8_t>().size(); ++i) image.data<uint8_t>()[i] = rgb[i % 3];
  return image;
}

struct How : Preprocess, AugmentOptions {};

How bytes_out(int height, int width, int channels = 3) {
  How options;
  options.height = height;
  options.width = width;
  options.channels = channels;
  options.normalisation.std = {1.F / 255, 1.F / 255, 1.F / 255};  // outputs are bytes again
  return options;
}

std::vector<float> train(const How& options, const Tensor& image, uint64_t seed) {
  const Augmenter augmenter = *Augmenter::make(options, options);
  std::vector<float> out(augmenter.output_size(), -1e9F);
  Random random(seed);
  EXPECT_TRUE(augmenter.train(image, random, out).ok());
  return out;
}

std::vector<float> evaluate(const How& options, const Tensor& image) {
  const Augmenter augmenter = *Augmenter::make(options, options);
  std::vector<float> out(augmenter.output_size(), -1e9F);
  EXPECT_TRUE(augmenter.evaluate(image, out).ok());
  return out;
}

TEST(Augment, EvaluationIsResizeCropNormalise) {
  How options;
  options.height = 20;
  options.width = 16;
  options.resize = 24;
  options.normalisation = {{0.5F, 0.4F, 0.3F}, {0.2F, 0.3F, 0.4F}};
  const Tensor image = *draw_image(37, 61, 4);
  std::vector<float> expected(3 * 20 * 16);
  normalise(*crop_centre(*resize_shorter(image, 24), 20, 16), 3, options.normalisation, expected);
  const auto out = evaluate(options, image);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected[i], 1e-5) << i;
}

TEST(Augment, ImageOfTheRightSizeStaysAsItIs) {
  const Tensor image = chart(4, 5);
  const auto out = evaluate(bytes_out(4, 5), image);
  EXPECT_EQ(out, train(bytes_out(4, 5), image, 1));
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_NEAR(out[i], image.data<uint8_t>()[3 * i], 1e-4);
    EXPECT_NEAR(out[20 + i], image.data<uint8_t>()[3 * i + 1], 1e-4);
  }
}

TEST(Augment, ImagesCoverTheOutputWhateverTheirShape) {
  for (const auto& [h, w] : {std::pair(3, 50), std::pair(50, 3), std::pair(1, 1), std::pair(17, 16)}) {
    for (const float value : evaluate(bytes_out(16, 12), *resize(flat(1, 77, 77, 77), h, w))) {
      ASSERT_NEAR(value, 77, 1e-3) << h << "x" << w;
    }
  }
  const Augmenter augmenter = *Augmenter::make(bytes_out(64, 64), {});
  std::vector<float> out(augmenter.output_size());
  const Tensor line = *Tensor::zeros({DType::kU8, Shape{1, 1000, 3}});
  EXPECT_EQ(augmenter.evaluate(line, out).code(), Code::kInvalidArgument);
}

TEST(Augment, ChannelsAreConverted) {
  const auto grey = evaluate(bytes_out(2, 2, 1), flat(2, 255, 0, 0));
  ASSERT_EQ(grey.size(), 4u);
  EXPECT_NEAR(grey[0], 76, 1e-3);
  const auto wide = evaluate(bytes_out(2, 3), chart(2, 3, 1));
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(wide[i], wide[6 + i]);
    EXPECT_EQ(wide[i], wide[12 + i]);
  }
  EXPECT_NEAR(wide[4], 17, 1e-4);
}

// Outputs are found in the padded image at one offset, and every offset is as likely as any other.
TEST(Augment, PaddedCropsAreUniform) {
  How options = bytes_out(6, 6);
  options.padding = 2;
  const Tensor image = chart(6, 6);
  const Augmenter augmenter = *Augmenter::make(options, options);
  std::vector<float> out(augmenter.output_size());
  std::map<std::pair<int, int>, int> seen;
  constexpr int kDraws = 25000;
  Random random(3);
  for (int draw = 0; draw < kDraws; ++draw) {
    ASSERT_TRUE(augmenter.train(image, random, out).ok());
    // (3, 3) of the output is always inside the image.
    const int value = static_cast<int>(std::lround(out[3 * 6 + 3]));
    const int top = value / 16 - 3, left = value % 16 - 3;
    ++seen[{top, left}];
    if (draw >= 200) continue;
    for (int y = 0; y < 6; ++y) {
      for (int x = 0; x < 6; ++x) {
        const int sy = y + top, sx = x + left;
        const bool inside = sy >= 0 && sy < 6 && sx >= 0 && sx < 6;
        ASSERT_NEAR(out[static_cast<size_t>(y * 6 + x)], inside ? 16 * sy + sx : 0, 1e-3);
        ASSERT_NEAR(out[static_cast<size_t>(36 + y * 6 + x)], inside ? 100 + 16 * sy + sx : 0, 1e-3);
      }
    }
  }
  ASSERT_EQ(seen.size(), 25u);
  double chi2 = 0;
  for (const auto& [offset, count] : seen) chi2 += std::pow(count - kDraws / 25.0, 2) / (kDraws / 25.0);
  EXPECT_LT(chi2, 51.2) << "24 degrees of freedom, p = 0.001";
}

TEST(Augment, MirroringHasItsProbability) {
  const Tensor image = chart(3, 5);
  for (const double probability : {0.0, 0.25, 1.0}) {
    How options = bytes_out(3, 5);
    options.flip = probability;
    const auto plain = evaluate(options, image);
    int mirrored = 0;
    for (uint64_t seed = 0; seed < 4000; ++seed) {
      const auto out = train(options, image, seed * 7919);
      if (out == plain) continue;
      ++mirrored;
      for (size_t y = 0; y < 9; ++y) {
        for (size_t x = 0; x < 5; ++x) ASSERT_EQ(out[y * 5 + x], plain[y * 5 + 4 - x]);
      }
    }
    EXPECT_NEAR(mirrored / 4000.0, probability, 0.03);
  }
}

TEST(Augment, MirroredPaddingIsOnTheOtherSide) {
  How options = bytes_out(4, 4);
  options.padding = 3;
  const Tensor image = chart(4, 4);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    options.flip = 0;
    const auto plain = train(options, image, seed);
    options.flip = 1;
    const auto mirrored = train(options, image, seed);
    for (size_t i = 0; i < plain.size(); ++i) ASSERT_EQ(mirrored[i], plain[i / 4 * 4 + 3 - i % 4]);
  }
}

TEST(Augment, BrightnessFillsItsRange) {
  How options = bytes_out(2, 2);
  options.brightness = 0.4;
  double low = 1e9, high = 0, sum = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const double value = train(options, flat(2, 100, 100, 100), seed * 31)[0];
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
  }
  EXPECT_NEAR(low, 60, 1);
  EXPECT_NEAR(high, 140, 1);
  EXPECT_NEAR(sum / 3000, 100, 2);
}

TEST(Augment, ContrastMovesAboutTheMeanAndSaturationAboutGrey) {
  Tensor image = flat(2, 100, 100, 100);
  for (size_t i = 0; i < 6; ++i) image.data<uint8_t>()[i] = 200;  // mean 150
  How options = bytes_out(2, 2);
  options.contrast = 0.5;
  bool changed = false;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto out = train(options, image, seed);
    ASSERT_NEAR(out[0] - 150, 150 - out[3], 1e-2);
    ASSERT_LE(std::abs(out[0] - 200), 25.1);
    changed = changed || std::abs(out[0] - 200) > 10;
  }
  EXPECT_TRUE(changed);

  options.contrast = 0;
  options.saturation = 1;
  double widest = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto out = train(options, flat(2, 120, 100, 100), seed);
    ASSERT_NEAR(0.299 * out[0] + 0.587 * out[4] + 0.114 * out[8], 105.98, 1.1) << "luma stays";
    widest = std::max<double>(widest, out[0] - out[4]);
    ASSERT_GE(out[0], out[4]);
  }
  EXPECT_GT(widest, 35);
}

TEST(Augment, CutoutIsASquareOfTheMean) {
  How options;
  options.height = options.width = 10;
  options.cutout = 4;
  options.normalisation.mean = {0.1F, 0.1F, 0.1F};
  std::map<long, int> areas;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const auto out = train(options, flat(10, 255, 255, 255), seed);
    const long zeros = std::count(out.begin(), out.begin() + 100, 0.F);
    ASSERT_EQ(std::count(out.begin(), out.end(), 0.F), 3 * zeros);
    ++areas[zeros];
  }
  EXPECT_EQ(areas.rbegin()->first, 16);
  EXPECT_EQ(areas.begin()->first, 4) << "centred on a corner";
  EXPECT_NEAR(areas[16] / 2000.0, 0.49, 0.06);
}

TEST(Augment, RandomAreasStayInRange) {
  How options = bytes_out(8, 8);
  options.min_area = 0.25;
  options.resize = 16;  // of evaluation; the random area replaces it
  // A horizontal ramp: the range of the output tells the width that was cut.
  Tensor ramp = *Tensor::allocate({DType::kU8, Shape{64, 64, 3}});
  for (size_t i = 0; i < ramp.data<uint8_t>().size(); ++i)
    ramp.data<uint8_t>()[i] = static_cast<uint8_t>(i / 3 % 64 * 4);
  double low = 1e9, high = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const auto out = train(options, ramp, seed);
    const double width = (out[7] - out[0]) / 4 * 8 / 7;
    low = std::min(low, width);
    high = std::max(high, width);
  }
  EXPECT_GT(low, 64 * 0.5 * std::sqrt(0.75) - 2);
  EXPECT_LT(low, 36);
  EXPECT_GT(high, 58);
  EXPECT_LE(high, 65);
}

TEST(Augment, SameSeedSameImage) {
  How options;
  options.padding = 4;
  options.flip = 0.5;
  options.brightness = options.contrast = options.saturation = 0.3;
  options.cutout = 8;
  const Tensor image = *draw_image(32, 32, 1);
  EXPECT_EQ(train(options, image, 5), train(options, image, 5));
  EXPECT_NE(train(options, image, 5), train(options, image, 6));
}

TEST(Augment, OptionsThatMakeNoSenseAreRefused) {
  const auto refused = [](auto change, const std::string& word) {
    How options;
    change(options);
    expect_failure(Augmenter::make(options, options), Code::kInvalidArgument, {word});
  };
  refused([](auto& o) { o.height = 0; }, "height");
  refused([](auto& o) { o.width = kMaxImageSide + 1; }, "width");
  refused([](auto& o) { o.channels = 2; }, "2 channels");
  refused([](auto& o) { o.resize = 16; }, "larger than the image it is cut out of");
  refused([](auto& o) { o.flip = 1.5; }, "flip");
  refused([](auto& o) { o.padding = -1; }, "padding");
  refused([](auto& o) { o.cutout = -1; }, "cutout");
  refused([](auto& o) { o.min_area = 0; }, "min_area");
  refused([](auto& o) { o.brightness = std::numeric_limits<double>::quiet_NaN(); }, "brightness");
  refused([](auto& o) { o.normalisation.std[1] = 0; }, "channel 1");
  refused([](auto& o) { o.min_area = 0.5, o.padding = 4; }, "one of the two");
}

}  // namespace
}  // namespace limber
