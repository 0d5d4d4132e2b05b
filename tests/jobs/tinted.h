// A world that drifts and a model for it: a picture's class is its strongest colour, and in another domain
// there is fog with a tint, which the statistics of the model's normalisation take away again.
#pragma once

#include "tensor/npy.h"
#include "tests/jobs/tiny.h"

namespace limber::test {

inline constexpr int64_t kTintedSide = 16;

inline constexpr std::string_view kTintedNet = R"(graph "tinted" {
  input %x: f32[N,3,16,16]
  param %w: f32[3,3,1,1]
  param %scale: f32[3]
  param %shift: f32[3]
  param %mean: f32[3]
  param %var: f32[3]
  param %head: f32[3,3]
  param %bias: f32[3]
  %c: f32[N,3,16,16] = Conv(%x, %w) {dilations=[1,1], pads=[0,0,0,0], strides=[1,1]} "colours"
  %n: f32[N,3,16,16] = BatchNorm(%c, %scale, %shift, %mean, %var) {epsilon=1e-05} "norm"
  %p: f32[N,3,1,1] = GlobalAveragePool(%n)
  %f: f32[N,3] = Reshape(%p) {shape=<N,3>}
  %y: f32[N,3] = Gemm(%f, %head, %bias) {trans_b=1} "head"
  output %y as "logits"
}
)";

struct TintedImages {
  Tensor pixels;  // u8[n,16,16,3]
  std::vector<int64_t> labels;
};

enum class Weather : uint8_t { kClear, kFog };

inline TintedImages tinted_images(int64_t count, uint64_t seed, Weather weather = Weather::kClear) {
  constexpr double kMiddle = 90, kClass = 14, kPicture = 6, kPattern = 35, kPixel = 3;
  constexpr double kSeen = 0.35, kTint = 6;  // through fog
  TintedImages made{*Tensor::allocate({DType::kU8, {count, kTintedSide, kTintedSide, 3}}), {}};
  Random random(seed);
  auto* at = made.pixels.data<uint8_t>().data();
  for (int64_t i = 0; i < count; ++i) {
    const auto label = static_cast<int64_t>(random.below(3));
    made.labels.push_back(label);
    double colours[3];
    for (int c = 0; c < 3; ++c) colours[c] = kMiddle + (c == label ? kClass : 0) + kPicture * random.normal();
    const double phase = random.uniform(0, 6.28),
                 turns = 6.2832 * static_cast<double>(1 + random.below(2)) / kTintedSide;
    for (int64_t p = 0; p < kTintedSide * kTintedSide; ++p) {
      const double across = static_cast<double>(p % kTintedSide), down = static_cast<double>(p / kTintedSide);
      const double pattern = kPattern * std::sin(turns * (across + down) + phase);
      for (int c = 0; c < 3; ++c) {
        double value = colours[c] + pattern + kPixel * random.normal();
        if (weather == Weather::kFog) value = kMiddle + kSeen * (value - kMiddle) + (c == 0 ? kTint : 0);
        *at++ = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
      }
    }
  }
  return made;
}

// As the model wants them.
inline Tensor prepared(const TintedImages& images) {
  const auto count = static_cast<int64_t>(images.labels.size()), area = kTintedSide * kTintedSide;
  Tensor made = *Tensor::allocate({DType::kF32, {count, 3, kTintedSide, kTintedSide}});
  const auto from = images.pixels.data<uint8_t>();
  auto* to = made.data<float>().data();
  for (int64_t i = 0; i < count; ++i)
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t p = 0; p < area; ++p)
        *to++ = static_cast<float>(from[static_cast<size_t>((i * area + p) * 3 + c)]) / 255;
  return made;
}

// Right about nine of ten images in clear weather.
inline Net tinted_net() {
  Net net = make_net(kTintedNet);
  const auto set = [&](const char* name, std::initializer_list<float> values, Shape shape) {
    net.params->set(name, Tensor::from<float>(values, std::move(shape)));
  };
  const float middle = (90 + 14.0F / 3) / 255, variance = 0.0112F;  // of all pixels
  set("w", {1, 0, 0, 0, 1, 0, 0, 0, 1}, {3, 3, 1, 1});
  set("scale", {1, 1, 1}, {3});
  set("shift", {0, 0, 0}, {3});
  set("mean", {middle, middle, middle}, {3});
  set("var", {variance, variance, variance}, {3});
  set("head", {8, 0, 0, 0, 8, 0, 0, 0, 8}, {3, 3});
  set("bias", {0, 0, 0}, {3});
  return net;
}

// "IMAGES,LABELS", as data sets are named.
inline std::string write_tinted(const Folder& folder, const TintedImages& images) {
  const std::string pixels = folder / "pixels.npy", labels = folder / "labels.npy";
  EXPECT_TRUE(write_npy(pixels, images.pixels).ok());
  const auto count = static_cast<int64_t>(images.labels.size());
  EXPECT_TRUE(write_npy(labels, Tensor::from(std::span<const int64_t>(images.labels), {count})).ok());
  return pixels + "," + labels;
}

}  // namespace limber::test
