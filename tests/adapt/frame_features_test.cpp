#include "adapt/frame_features.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace limber::adapt {
namespace {

constexpr int kPictureSide = 32;

// Smooth colours with a little texture.
std::vector<float> scene(uint64_t seed) {
  Random random(seed);
  std::vector<float> image(3 * kPictureSide * kPictureSide);
  for (int c = 0; c < 3; ++c) {
    const double a = random.uniform(-1, 1), b = random.uniform(-1, 1), phase = random.uniform(0, 6);
    for (int y = 0; y < kPictureSide; ++y) {
      for (int x = 0; x < kPictureSide; ++x)
        image[static_cast<size_t>((c * kPictureSide + y) * kPictureSide + x)] =
            static_cast<float>(std::sin(a * x / 4 + b * y / 4 + phase) + 0.05 * random.normal());
    }
  }
  return image;
}

float at(const Frame& frame, FrameFeature feature) { return frame.features[static_cast<size_t>(feature)]; }

Frame described(const std::vector<float>& image, std::vector<float> logits = {1, 3, 2}) {
  return frame_of(image, 3, kPictureSide, kPictureSide, logits);
}

TEST(FrameFeatures, FollowWhatIsDoneToPixels) {
  const auto image = scene(1);
  const Frame before = described(image);
  auto brighter = image, duller = image, noisy = image, blurred = image;
  Random random(2);
  for (float& value : brighter) value += 0.5F;
  for (float& value : duller) value *= 0.5F;
  for (float& value : noisy) value += static_cast<float>(0.4 * random.normal());
  for (size_t i = 1; i + 1 < image.size(); ++i) blurred[i] = (image[i - 1] + image[i] + image[i + 1]) / 3;
  EXPECT_NEAR(at(described(brighter), FrameFeature::kBrightness), at(before, FrameFeature::kBrightness) + 0.5,
              1e-3);
  EXPECT_NEAR(at(described(brighter), FrameFeature::kContrast), at(before, FrameFeature::kContrast), 1e-2);
  EXPECT_NEAR(at(described(brighter), FrameFeature::kDarkest), at(before, FrameFeature::kDarkest) + 0.5,
              1e-3);
  EXPECT_NEAR(at(described(duller), FrameFeature::kContrast),
              at(before, FrameFeature::kContrast) - std::log(2), 1e-2);
  EXPECT_NEAR(at(described(duller), FrameFeature::kFineness), at(before, FrameFeature::kFineness), 1e-2);
  EXPECT_GT(at(described(noisy), FrameFeature::kColourEdges), at(before, FrameFeature::kColourEdges) + 0.5F);
  EXPECT_LT(at(described(noisy), FrameFeature::kFineness), at(before, FrameFeature::kFineness));
  EXPECT_LT(at(described(blurred), FrameFeature::kCurvature), at(before, FrameFeature::kCurvature));
}

TEST(FrameFeatures, OfTheAnswerAreWhatTheirNamesSay) {
  const Frame frame = described(scene(1), {1, 3, 2});
  const double e1 = std::exp(1), e2 = std::exp(2), e3 = std::exp(3), sum = e1 + e2 + e3;
  const double entropy = -(e1 * std::log(e1 / sum) + e2 * std::log(e2 / sum) + e3 * std::log(e3 / sum)) / sum;
  EXPECT_EQ(frame.claimed, 1);
  EXPECT_NEAR(at(frame, FrameFeature::kEvidence), std::log(sum), 1e-4);
  EXPECT_NEAR(at(frame, FrameFeature::kMargin), 1, 1e-5);
  EXPECT_NEAR(at(frame, FrameFeature::kEntropy), std::log(entropy), 1e-3);
}

TEST(FrameFeatures, AreNumbersForAnyImage) {
  for (const int channels : {1, 3}) {
    for (const auto& [height, width] :
         {std::pair{1, 1}, {1, 40}, {40, 1}, {2, 2}, {3, 700}, {700, 3}, {65, 300}}) {
      std::vector<float> image(static_cast<size_t>(channels * height * width), 0.25F);
      for (const float value : {0.25F, 0.F, NAN, INFINITY}) {
        image[0] = value;
        const std::vector<float> logits{value, 1};
        const Frame frame = frame_of(image, channels, height, width, logits);
        for (const float feature : frame.features) EXPECT_TRUE(std::isfinite(feature));
        EXPECT_TRUE(frame.claimed == 0 || frame.claimed == 1);
      }
    }
  }
}

}  // namespace
}  // namespace limber::adapt
