// What a drift detector looks at: a few numbers for each frame that a model was asked about, read off the
// input and the answer that are in memory anyway.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace limber::adapt {

enum class FrameFeature : uint8_t {
  // Of pixels, as the network gets them.
  kBrightness,  // mean
  kContrast,    // log of the deviation
  kEdgesAcross,
  kEdgesDown,    // logs of mean differences between neighbours
  kColourEdges,  // the same of the difference of two colours: noise is alone in having much of it
  kFineness,     // edges over two pixels against edges over one
  kCurvature,    // second against first differences
  kSharpness,    // large against mean differences
  kDarkest,      // mean over rows
  kBrightest,
  kColour,  // mean difference of colours
  // Of the answer.
  kEvidence,  // log of the sum of exp(logit)
  kMargin,    // first against second logit
  kEntropy,
};
inline constexpr size_t kFrameFeatures = 14;
const char* feature_name(FrameFeature feature);  // "brightness"

struct Frame {
  std::array<float, kFrameFeatures> features{};
  int32_t claimed = 0;  // class
};

// `image` is f32[C,H,W] with C 1 or 3, `logits` has one number a class. Looks at no more than 16 pairs of
// rows and 256 columns in the middle.
Frame frame_of(std::span<const float> image, int channels, int height, int width,
               std::span<const float> logits);

}  // namespace limber::adapt
