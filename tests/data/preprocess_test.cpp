#include "data/preprocess.h"

#include <gtest/gtest.h>

#include "tests/data/files.h"

namespace limber {
namespace {

Preprocess sized(int side) {
  Preprocess how;
  how.height = how.width = side;
  return how;
}

Preprocess preset(const char* name, int side) {
  Preprocess how = sized(side);
  use_preset(*find_preset(name), how);
  return how;
}

// What torchvision's evaluation transform of ResNet does: Resize(256), CenterCrop(224), Normalize.
TEST(Preprocess, ImagenetIsWhatTorchvisionDoes) {
  const Preprocess how = preset("imagenet", 224);
  EXPECT_EQ(how.resize, 256);
  const Tensor image = *draw_image(300, 500, 7);
  const Preprocessor made = *Preprocessor::make(how);
  std::vector<float> out(made.output_size()), expected(out.size());
  ASSERT_TRUE(made.apply(image, out).ok());
  normalise(*crop_centre(*resize_shorter(image, 256), 224, 224), 3,
            {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}}, expected);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected[i], 1e-5) << i;
}

TEST(Preprocess, PresetsHaveTheRangeTheyPromise) {
  Tensor image = *Tensor::zeros({DType::kU8, Shape{1, 2, 3}});
  for (size_t i = 3; i < 6; ++i) image.data<uint8_t>()[i] = 255;
  const auto range = [&](const char* name) {
    Preprocess how = preset(name, 1);
    how.width = 2;
    const Preprocessor made = *Preprocessor::make(how);
    std::vector<float> out(made.output_size());
    EXPECT_TRUE(made.apply(image, out).ok());
    return std::pair(out[0], out[1]);
  };
  EXPECT_EQ(range("none"), std::pair(0.F, 1.F));
  EXPECT_EQ(range("minus1to1"), std::pair(-1.F, 1.F));
  EXPECT_NEAR(range("0to255").second, 255, 1e-4);
}

TEST(Preprocess, APresetIsRecognisedByWhatItDoes) {
  for (const Preset& one : presets())
    EXPECT_EQ(preset_name(preset(std::string(one.name).c_str(), 64)), one.name);
  Preprocess how = preset("imagenet", 64);
  how.normalisation.mean[0] += 0.01F;
  EXPECT_EQ(preset_name(how), "custom");
  how = preset("imagenet", 64);
  how.resize = 64;
  EXPECT_EQ(preset_name(how), "custom") << "another part of the image is seen";
  EXPECT_EQ(describe(preset("imagenet", 224)),
            "imagenet: 3x224x224 from a shorter side of 256, mean 0.485,0.456,0.406, std 0.229,0.224,0.225");
  EXPECT_EQ(describe(sized(32)), "none: 3x32x32, mean 0,0,0, std 1,1,1");
}

TEST(Preprocess, OneChannelLooksAtItsOwnNumbersOnly) {
  Preprocess how = preset("mnist", 28);
  how.channels = 1;
  how.normalisation.mean[2] = 0.9F;
  EXPECT_EQ(preset_name(how), "mnist");
}

TEST(Preprocess, AskedResizingWins) {
  Preprocess how = sized(224);
  how.resize = 232;
  use_preset(*find_preset("imagenet"), how);
  EXPECT_EQ(how.resize, 232);
}

TEST(Preprocess, UnknownPresetNamesThoseThereAre) {
  expect_failure(find_preset("imagnet"), Code::kNotFound, {"'imagnet'", "imagenet", "minus1to1", "none"});
}

TEST(Preprocess, ACropLargerThanTheImageIsSaidInWords) {
  Preprocess how = sized(64);
  how.resize = 32;
  expect_failure(Preprocessor::make(how), Code::kInvalidArgument,
                 {"a crop of 64x64 pixels", "larger than the image", "scaled to 32", "64 or more"});
  how.resize = -1;
  expect_failure(Preprocessor::make(how), Code::kInvalidArgument, {"-1"});
}

}  // namespace
}  // namespace limber
