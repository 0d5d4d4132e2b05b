// Small networks that are no classifiers.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "io/builtin_models.h"
#include "train/init.h"

namespace limber::test {

// A trunk of residual blocks on 32x32 images, and behind it what `heads` says: statements that read %f,
// f32[N,24,16,16].
inline Model make_trunk(std::string_view parameters, std::string_view heads, uint64_t seed = 1) {
  std::string text = "graph \"trunk\" {\n  input %x: f32[N,3,32,32]\n  param %w: f32[24,3,3,3]\n";
  for (int b = 0; b < 3; ++b)
    text += fmt::format("  param %w{0}a: f32[24,24,3,3]\n  param %w{0}b: f32[24,24,3,3]\n", b);
  text += fmt::format(
      "{}\n  %s: f32[N,24,16,16] = Conv(%x, %w) {{strides=[2,2], pads=[1,1,1,1], dilations=[1,1]}} \"stem\"\n"
      "  %f0: f32[N,24,16,16] = Relu(%s) \"relu\"\n",
      parameters);
  constexpr std::string_view kSame = "{strides=[1,1], pads=[1,1,1,1], dilations=[1,1]}";
  for (int b = 0; b < 3; ++b) {
    text += fmt::format("  %a{0}: f32[N,24,16,16] = Conv(%f{0}, %w{0}a) {1} \"conv{0}a\"\n", b, kSame);
    text += fmt::format("  %r{0}: f32[N,24,16,16] = Relu(%a{0}) \"relu{0}a\"\n", b);
    text += fmt::format("  %b{0}: f32[N,24,16,16] = Conv(%r{0}, %w{0}b) {1} \"conv{0}b\"\n", b, kSame);
    text += fmt::format("  %t{0}: f32[N,24,16,16] = Add(%b{0}, %f{0}) \"add{0}\"\n", b);
    text += fmt::format("  %{1}: f32[N,24,16,16] = Relu(%t{0}) \"relu{0}b\"\n", b,
                        b == 2 ? "f" : fmt::format("f{}", b + 1));
  }
  Model model;
  auto graph = parse(text + std::string(heads) + "\n}\n");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return model;
  model.graph = *std::move(graph);
  model.params = std::make_shared<Parameters>();
  EXPECT_TRUE(initialise(model.graph, *model.params, seed).ok());
  return model;
}

// Scores and boxes of each place, whose numbers differ in size.
inline Model make_detector() {
  return make_trunk("  param %wc: f32[6,24,1,1]\n  param %wb: f32[4,24,1,1]\n  const %big: f32[] = {100.0}",
                    R"(
  %scores: f32[N,6,16,16] = Conv(%f, %wc) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1]} "scores"
  %small: f32[N,4,16,16] = Conv(%f, %wb) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1]} "small"
  %boxes: f32[N,4,16,16] = Mul(%small, %big) "boxes"
  output %scores as "scores"
  output %boxes as "boxes")");
}

// Which of five classes each place is of.
inline Model make_segmenter() {
  return make_trunk("  param %wc: f32[5,24,1,1]", R"(
  %map: f32[N,5,16,16] = Conv(%f, %wc) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1]} "map"
  output %map as "map")");
}

}  // namespace limber::test
