#include "tests/passes/golden.h"

namespace limber {
namespace {

constexpr const char* kX = "input %x: f32[N,4,8,8]\n";

TEST(UseGlobalPools, MeanOverSpace) {
  expect_rewrite(use_global_pools,
                 std::string(kX) + "%y: f32[N,4,1,1] = ReduceMean(%x) {axes=[2,3], keepdims=1}\noutput %y",
                 std::string(kX) + "%y: f32[N,4,1,1] = GlobalAveragePool(%x)\noutput %y");
  expect_rewrite(use_global_pools,
                 std::string(kX) + "%y: f32[N,4] = ReduceMean(%x) {axes=[2,3], keepdims=0} \"m\"\noutput %y",
                 std::string(kX) +
                     "%m: f32[N,4,1,1] = GlobalAveragePool(%x) \"m\"\n%y: f32[N,4] = Reshape(%m) "
                     "{shape=<N,4>} \"m\"\noutput %y");
  expect_rewrite(use_global_pools,
                 std::string(kX) + "%y: f32[N,4,1,1] = ReduceMax(%x) {axes=[2,3], keepdims=1}\noutput %y",
                 std::string(kX) + "%y: f32[N,4,1,1] = GlobalMaxPool(%x)\noutput %y");
}

TEST(UseGlobalPools, WindowsAsLargeAsTheImage) {
  expect_rewrite(
      use_global_pools,
      std::string(kX) +
          "%y: f32[N,4,1,1] = AveragePool(%x) {kernel=[8,8], pads=[0,0,0,0], strides=[8,8]}\noutput %y",
      std::string(kX) + "%y: f32[N,4,1,1] = GlobalAveragePool(%x)\noutput %y");
  expect_rewrite(use_global_pools,
                 std::string(kX) +
                     "%y: f32[N,4,1,1] = MaxPool(%x) {dilations=[1,1], kernel=[8,8], pads=[0,0,0,0], "
                     "strides=[1,1]}\noutput %y",
                 std::string(kX) + "%y: f32[N,4,1,1] = GlobalMaxPool(%x)\noutput %y");
}

TEST(UseGlobalPools, KeepsTheRest) {
  expect_unchanged(use_global_pools,
                   std::string(kX) + "%y: f32[N,1,8,8] = ReduceMean(%x) {axes=[1], keepdims=1}\noutput %y");
  expect_unchanged(use_global_pools,
                   std::string(kX) + "%y: f32[N,4,8,1] = ReduceMean(%x) {axes=[3], keepdims=1}\noutput %y");
  expect_unchanged(use_global_pools,
                   "input %x: f32[N,7,6]\n%y: f32[N,7,1] = ReduceMean(%x) {axes=[2], keepdims=1}\noutput %y");
  expect_unchanged(
      use_global_pools,
      std::string(kX) +
          "%y: f32[N,4,1,1] = AveragePool(%x) {kernel=[7,7], pads=[0,0,0,0], strides=[7,7]}\noutput %y");
  expect_unchanged(
      use_global_pools,
      std::string(kX) +
          "%y: f32[N,4,3,3] = AveragePool(%x) {kernel=[8,8], pads=[1,1,1,1], strides=[1,1]}\noutput %y");
}

std::string padded_conv(std::string_view pad_attrs, std::string_view type = "f32[N,4,10,10]") {
  return fmt::format(
      "{}param %w: f32[6,4,3,3]\n%p: {} = Pad(%x) {}\n"
      "%y: f32[N,6,8,8] = Conv(%p, %w) {{dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}}\noutput "
      "%y",
      kX, type, pad_attrs);
}

TEST(FoldPad, IntoConv) {
  const std::string folded =
      std::string(kX) +
      "param %w: f32[6,4,3,3]\n%y: f32[N,6,8,8] = Conv(%x, %w) {dilations=[1,1], groups=1, "
      "pads=[1,1,1,1], strides=[1,1]}\noutput %y";
  expect_rewrite(fold_pad, padded_conv("{pads=[0,0,1,1,0,0,1,1]}"), folded);
  expect_rewrite(fold_pad, padded_conv("{mode=\"constant\", pads=[0,0,1,1,0,0,1,1], value=0.0}"), folded);
  expect_rewrite(fold_pad, padded_conv("{pads=[0,0,2,0,0,0,0,2]}"),
                 std::string(kX) +
                     "param %w: f32[6,4,3,3]\n%y: f32[N,6,8,8] = Conv(%x, %w) {dilations=[1,1], groups=1, "
                     "pads=[2,0,0,2], strides=[1,1]}\noutput %y");
}

TEST(FoldPad, KeepsOtherPads) {
  expect_unchanged(fold_pad, padded_conv("{pads=[0,0,1,1,0,0,1,1], value=1.0}"));
  expect_unchanged(fold_pad, padded_conv("{mode=\"reflect\", pads=[0,0,1,1,0,0,1,1]}"));
  expect_unchanged(fold_pad, padded_conv("{pads=[0,0,3,1,0,0,-1,1]}"));
  expect_unchanged(fold_pad, padded_conv("{pads=[0,0,1,1,0,0,1,1]}") + "\noutput %p");
  expect_unchanged(
      fold_pad,
      "input %x: f32[N,3,8,8]\nparam %w: f32[6,4,3,3]\n%p: f32[N,4,8,8] = Pad(%x) {pads=[0,0,0,0,0,1,0,0]}\n"
      "%y: f32[N,6,6,6] = Conv(%p, %w) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}\noutput "
      "%y");
}

TEST(FoldPad, AveragesCountTheZeros) {
  const std::string pad = std::string(kX) + "%p: f32[N,4,10,10] = Pad(%x) {pads=[0,0,1,1,0,0,1,1]}\n";
  expect_rewrite(
      fold_pad,
      pad + "%y: f32[N,4,8,8] = AveragePool(%p) {kernel=[3,3], pads=[0,0,0,0], strides=[1,1]}\noutput %y",
      std::string(kX) +
          "%y: f32[N,4,8,8] = AveragePool(%x) {count_include_pad=1, kernel=[3,3], pads=[1,1,1,1], "
          "strides=[1,1]}\noutput %y");
  expect_unchanged(
      fold_pad,
      pad + "%y: f32[N,4,10,10] = AveragePool(%p) {kernel=[3,3], pads=[1,1,1,1], strides=[1,1]}\noutput %y");
  expect_unchanged(fold_pad, pad +
                                 "%y: f32[N,4,8,8] = MaxPool(%p) {dilations=[1,1], kernel=[3,3], "
                                 "pads=[0,0,0,0], strides=[1,1]}\noutput %y");
}

}  // namespace
}  // namespace limber
