// A small classifier with batch normalisation and images for it.
#pragma once

#include "adapt/strategy.h"
#include "tests/train/training_case.h"

namespace limber::adapt {

inline constexpr std::string_view kSmallModel = R"(graph "small" {
  input %x: f32[N,3,8,8]
  param %w1: f32[8,3,3,3]
  param %s1: f32[8]
  param %b1: f32[8]
  param %mean1: f32[8]
  param %var1: f32[8]
  param %w2: f32[6,8,3,3]
  param %s2: f32[6]
  param %b2: f32[6]
  param %mean2: f32[6]
  param %var2: f32[6]
  param %head: f32[4,6]
  param %head_bias: f32[4]
  %c1: f32[N,8,8,8] = Conv(%x, %w1) {dilations=[1,1], pads=[1,1,1,1], strides=[1,1]} "conv1"
  %n1: f32[N,8,8,8] = BatchNorm(%c1, %s1, %b1, %mean1, %var1) {epsilon=1e-05} "norm1"
  %r1: f32[N,8,8,8] = Relu(%n1)
  %c2: f32[N,6,4,4] = Conv(%r1, %w2) {dilations=[1,1], pads=[1,1,1,1], strides=[2,2]} "conv2"
  %n2: f32[N,6,4,4] = BatchNorm(%c2, %s2, %b2, %mean2, %var2) {epsilon=1e-05} "norm2"
  %r2: f32[N,6,4,4] = Relu(%n2)
  %p: f32[N,6,1,1] = GlobalAveragePool(%r2)
  %f: f32[N,6] = Reshape(%p) {shape=<N,6>}
  %l: f32[N,4] = Gemm(%f, %head, %head_bias) {trans_b=1} "head"
  %y: f32[N,4] = Softmax(%l) {axis=1}
  output %y as "p"
}
)";

inline constexpr std::string_view kPlainModel = R"(graph "plain" {
  input %x: f32[N,3,8,8]
  param %w: f32[6,3,3,3]
  param %head: f32[4,6]
  %c: f32[N,6,8,8] = Conv(%x, %w) {dilations=[1,1], pads=[1,1,1,1], strides=[1,1]}
  %r: f32[N,6,8,8] = Relu(%c)
  %p: f32[N,6,1,1] = GlobalAveragePool(%r)
  %f: f32[N,6] = Reshape(%p) {shape=<N,6>}
  %y: f32[N,4] = Gemm(%f, %head) {trans_b=1}
  output %y as "y"
}
)";

inline AdaptedModel model_of(std::string_view text) {
  const test::Net net = test::make_net(text);
  return {.graph = net.graph, .weights = net.params, .backends = test::cpu_backends()};
}
inline AdaptedModel small_model() { return model_of(kSmallModel); }
inline AdaptedModel plain_model() { return model_of(kPlainModel); }

inline Tensor small_images(int64_t count, uint64_t seed, float shift = 0.3f) {
  Tensor images = *Tensor::allocate({DType::kF32, {count, 3, 8, 8}});
  Random random(seed);
  test::fill_random(images, random);
  for (float& x : images.data<float>()) x += shift;
  return images;
}

}  // namespace limber::adapt
