#include "data/synthetic.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/data/files.h"

namespace limber {
namespace {

std::unique_ptr<Dataset> open(const std::string& spec, Split split = Split::kTrain) {
  auto data = open_dataset(spec, {split, true, {}});
  EXPECT_TRUE(data.ok()) << data.status().message();
  return *std::move(data);
}

std::vector<uint8_t> pixels(const Tensor& image) {
  const auto data = image.data<uint8_t>();
  return {data.begin(), data.end()};
}
std::vector<uint8_t> pixels(const Dataset& data, size_t index) { return pixels(data.get(index)->image); }

double mean(const std::vector<uint8_t>& values) {
  double sum = 0;
  for (const uint8_t v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

// Mean difference between neighbours in a row of a 32x32 image.
double roughness(const std::vector<uint8_t>& values) {
  double sum = 0;
  for (size_t i = 0; i + 3 < values.size(); ++i) {
    if (i % 96 < 93) sum += std::abs(values[i] - values[i + 3]);
  }
  return sum / static_cast<double>(values.size());
}

double distance(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}

TEST(Synthetic, ImagesDependOnSeedSplitAndIndexOnly) {
  const auto a = open("synthetic"), b = open("synthetic"), other = open("synthetic:seed=1");
  const auto test = open("synthetic", Split::kTest);
  EXPECT_EQ(a->size(), 10000u);
  EXPECT_EQ(test->size(), 2000u);
  EXPECT_EQ(a->class_names().size(), 10u);
  const auto image = pixels(*a, 77);
  pixels(*b, 5);
  EXPECT_EQ(pixels(*b, 77), image);
  EXPECT_NE(pixels(*a, 87), image);
  EXPECT_NE(pixels(*other, 77), image);
  EXPECT_NE(pixels(*test, 77), image);
  EXPECT_EQ(a->get(77)->label, 7);
  EXPECT_EQ(a->get(77)->image.type().to_string(), "u8[32,32,3]");
  EXPECT_EQ(open("synthetic:size=50,count=3")->get(2)->image.type().to_string(), "u8[50,50,3]");
}

// Classes can be told apart, but not by looking at where the bright pixels are.
TEST(Synthetic, IsNeitherNoiseNorTrivial) {
  constexpr size_t kImages = 3000, kPixels = 32 * 32 * 3;
  const auto train = open("synthetic"), test = open("synthetic", Split::kTest);
  std::vector<std::vector<double>> centres(10, std::vector<double>(kPixels));
  for (size_t i = 0; i < kImages; ++i) {
    const auto image = pixels(*train, i);
    const double middle = mean(image);
    for (size_t p = 0; p < kPixels; ++p) centres[i % 10][p] += (image[p] - middle) / (kImages / 10);
  }
  int right = 0;
  for (size_t i = 0; i < 500; ++i) {
    const auto image = pixels(*test, i);
    const double middle = mean(image);
    std::vector<double> score(10);
    for (size_t c = 0; c < 10; ++c) {
      for (size_t p = 0; p < kPixels; ++p) {
        score[c] += centres[c][p] * (image[p] - middle) - 0.5 * centres[c][p] * centres[c][p];
      }
    }
    right += std::max_element(score.begin(), score.end()) - score.begin() == static_cast<long>(i % 10);
  }
  EXPECT_GT(right, 75) << "of 500; chance is 50";
  EXPECT_LT(right, 300);
}

TEST(Synthetic, SpecsAreRead) {
  const auto options = parse_synthetic("synthetic:night=0.5,size=48,fog,count=30,seed=4");
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->size, 48);
  EXPECT_EQ(options->count, 30u);
  EXPECT_EQ(options->seed, 4u);
  EXPECT_EQ(format_shifts(options->shifts), "night=0.5,fog");
  EXPECT_TRUE(parse_synthetic("synthetic:")->shifts.empty());
  EXPECT_FALSE(is_synthetic("synthetics"));
  for (const char* bad : {"synthetic:smog", "synthetic:night=0", "synthetic:night=1.5",
                          "synthetic:night=", "synthetic:night=nan", "synthetic:size=x", "synthetic:size=4",
                          "synthetic:size=5000", "synthetic:count=-1", "synthetic:seed",
                          "synthetic:night,,fog", "synthetic:count=9999999999999"}) {
    const auto data = open_dataset(bad);
    EXPECT_FALSE(data.ok()) << bad;
    EXPECT_EQ(data.status().code(), Code::kInvalidArgument) << bad;
  }
  expect_failure(open_dataset("synthetic:smog"), Code::kInvalidArgument,
                 {"synthetic:smog", "'smog'", "viewpoint"});
  expect_failure(open_dataset("synthetic", {Split::kTrain, false, {"cat"}}), Code::kInvalidArgument,
                 {"'cat'"});
}

TEST(Shift, EachRepeatsAndGrowsWithItsStrength) {
  const auto data = open("synthetic");
  for (int k = 0; k < kShiftKinds; ++k) {
    const auto kind = static_cast<ShiftKind>(k);
    double weak = 0, strong = 0;
    for (size_t i = 0; i < 40; ++i) {
      const Tensor image = data->get(i)->image;
      const auto plain = pixels(image);
      const auto shifted = pixels(*apply_shifts(image, {{kind, 1}}, i));
      EXPECT_EQ(shifted, pixels(*apply_shifts(image, {{kind, 1}}, i)));
      strong += distance(plain, shifted) / 40;
      weak += distance(plain, pixels(*apply_shifts(image, {{kind, 0.2}}, i))) / 40;
    }
    EXPECT_GT(weak, 0.3) << shift_name(kind);
    EXPECT_GT(strong, 1.5 * weak) << shift_name(kind);
    EXPECT_GT(strong, 5) << shift_name(kind);
  }
}

TEST(Shift, EachDoesWhatItsNameSays) {
  const auto data = open("synthetic");
  for (size_t i = 0; i < 30; ++i) {
    const Tensor image = data->get(i)->image;
    const auto plain = pixels(image);
    const auto with = [&](ShiftKind kind) { return pixels(*apply_shifts(image, {{kind, 1}}, 9)); };
    EXPECT_LT(mean(with(ShiftKind::kNight)), 0.5 * mean(plain));
    EXPECT_GT(mean(with(ShiftKind::kFog)), mean(plain));
    EXPECT_LT(roughness(with(ShiftKind::kFog)), 0.5 * roughness(plain));
    EXPECT_LT(roughness(with(ShiftKind::kBlur)), 0.6 * roughness(plain));
    EXPECT_GT(roughness(with(ShiftKind::kNoise)), 1.5 * roughness(plain));
    const auto inverted = with(ShiftKind::kInvert);
    for (size_t p = 0; p < plain.size(); ++p) ASSERT_EQ(inverted[p], 255 - plain[p]);
  }
}

TEST(Shift, ShiftsAreAppliedInTheirOrder) {
  const Tensor image = open("synthetic")->get(3)->image;
  const auto invert_twice = apply_shifts(image, {{ShiftKind::kInvert, 1}, {ShiftKind::kInvert, 1}}, 0);
  EXPECT_EQ(pixels(*invert_twice), pixels(image));
  const Shift night{ShiftKind::kNight, 1}, invert{ShiftKind::kInvert, 1};
  EXPECT_GT(mean(pixels(*apply_shifts(image, {night, invert}, 0))),
            mean(pixels(*apply_shifts(image, {invert, night}, 0))) + 50);
}

TEST(Shift, ImagesOfAnySizeMayBeShifted) {
  for (const auto& [h, w] : {std::pair(1, 1), std::pair(1, 40), std::pair(70, 9)}) {
    for (int k = 0; k < kShiftKinds; ++k) {
      const auto shifted = apply_shifts(*draw_image(h, w, 1), {{static_cast<ShiftKind>(k), 1}}, 2);
      ASSERT_TRUE(shifted.ok());
      EXPECT_EQ(shifted->type().to_string(), fmt::format("u8[{},{},3]", h, w));
    }
  }
}

TEST(Shift, AnyDataSetMayBeShifted) {
  const Tensor images = *Tensor::zeros({DType::kU8, Shape{3, 8, 8}});
  std::shared_ptr<const Dataset> grey =
      *open_arrays(images, Tensor::from<int64_t>({2, 0, 1}, Shape{3}), "grey");
  const auto shifted = shift_dataset(grey, *parse_shifts("noise=0.5"), 1);
  EXPECT_EQ(shifted->size(), 3u);
  EXPECT_EQ(shifted->label(0), 2);
  EXPECT_EQ(shifted->name(1), "grey[1]");
  EXPECT_EQ(shifted->get(0)->image.type().to_string(), "u8[8,8,3]");
  EXPECT_EQ(pixels(*shifted, 1), pixels(*shifted, 1));
  EXPECT_NE(pixels(*shifted, 0), pixels(*shifted, 1)) << "each image has its own noise";
  EXPECT_EQ(format_shifts(*parse_shifts("")), "");
}

}  // namespace
}  // namespace limber
