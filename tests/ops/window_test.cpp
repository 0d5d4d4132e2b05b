// Convolution and pooling.
#include <gtest/gtest.h>

#include "tests/ops/type_case.h"

namespace limber::testing {
namespace {

Attrs conv(Ints strides, Ints pads, Ints dilations, int64_t groups = 1) {
  return {{"strides", strides}, {"pads", pads}, {"dilations", dilations}, {"groups", groups}};
}
Attrs conv2d() { return conv({1, 1}, {0, 0, 0, 0}, {1, 1}); }
Attrs transposed(Ints strides, Ints pads, Ints dilations, Ints output_padding, int64_t groups = 1) {
  return conv(strides, pads, dilations, groups).set("output_padding", output_padding);
}
Attrs pool(Ints kernel, Ints strides, Ints pads, bool ceil_mode = false) {
  return {{"kernel", kernel}, {"strides", strides}, {"pads", pads}, {"ceil_mode", num(ceil_mode)}};
}
Attrs max_pool(Ints kernel, Ints strides, Ints pads, Ints dilations, bool ceil_mode = false) {
  return pool(kernel, strides, pads, ceil_mode).set("dilations", dilations);
}

constexpr OpKind kConv = OpKind::kConv, kConvTranspose = OpKind::kConvTranspose, kMaxPool = OpKind::kMaxPool,
                 kAveragePool = OpKind::kAveragePool;

TEST(ConvTypes, Variants) {
  expect_types({
      {kConv,
       {"f32[N,3,224,224]", "f32[64,3,7,7]", "f32[64]"},
       conv({2, 2}, {3, 3, 3, 3}, {1, 1}),
       {"f32[N,64,112,112]"}},
      {kConv, {"f32[2,3,10]", "f32[5,3,3]"}, conv({1}, {0, 1}, {2}), {"f32[2,5,7]"}},
      {kConv, {"f32[1,8,9,9]", "f32[8,1,3,3]"}, conv({1, 1}, {1, 1, 1, 1}, {1, 1}, 8), {"f32[1,8,9,9]"}},
      {kConv, {"f32[1,8,9,9]", "f32[12,2,3,3]"}, conv({2, 1}, {0, 0, 0, 0}, {1, 1}, 4), {"f32[1,12,4,7]"}},
      {kConv,
       {"f32[1,4,5,6,7]", "f32[2,4,1,2,3]"},
       conv({1, 1, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}),
       {"f32[1,2,5,5,5]"}},
      {kConv, {"f32[N,3,H,W]", "f32[8,3,3,3]"}, conv({1, 1}, {1, 1, 0, 0}, {1, 1}), {"f32[N,8,H-1,W-1]"}},
      {kConv, {"f32[N,3,4H,32W]", "f32[8,3,3,3]"}, conv({2, 2}, {1, 1, 1, 1}, {1, 1}), {"f32[N,8,2H,16W]"}},
      {kConv, {"f32[0,3,4,4]", "f32[8,3,3,3]"}, conv2d(), {"f32[0,8,2,2]"}},
      {kConv, {"f32[N,C,4,4]", "f32[8,3,3,3]"}, conv2d(), {"f32[N,8,2,2]"}},
      {kConv,
       {"f32[N,3,4,4]", "f32[8,3,3,3]", "_", "f32[N,8,2,2]"},
       conv2d().set("act", text("relu")),
       {"f32[N,8,2,2]"}},
  });
}

TEST(ConvTypes, Transposed) {
  expect_types({
      {kConvTranspose,
       {"f32[N,3,4,4]", "f32[3,2,3,3]"},
       transposed({2, 2}, {0, 0, 0, 0}, {1, 1}, {0, 0}),
       {"f32[N,2,9,9]"}},
      {kConvTranspose,
       {"f32[1,3,4,4]", "f32[3,2,3,3]"},
       transposed({2, 2}, {1, 1, 1, 1}, {1, 1}, {1, 1}),
       {"f32[1,2,8,8]"}},
      {kConvTranspose,
       {"f32[1,4,5]", "f32[4,3,2]", "f32[6]"},
       transposed({3}, {0, 0}, {2}, {0}, 2),
       {"f32[1,6,15]"}},
      {kConvTranspose, {"f32[N,4,H]", "f32[4,3,2]"}, transposed({2}, {0, 0}, {1}, {0}), {"f32[N,3,2H]"}},
  });
  expect_failures({
      {kConvTranspose,
       {"f32[1,5,4]", "f32[4,3,2]"},
       transposed({1}, {0, 0}, {1}, {0}),
       "expected x to have 4 channels"},
      {kConvTranspose,
       {"f32[1,4,4]", "f32[4,3,2]"},
       transposed({1}, {0, 0}, {1}, {0}, 3),
       "do not divide into groups of 3"},
      {kConvTranspose,
       {"f32[1,4,2]", "f32[4,3,2]"},
       transposed({1}, {9, 9}, {1}, {0}),
       "pads 9+9 are too large"},
      {kConvTranspose,
       {"f32[1,4,2]", "f32[4,3,2]"},
       transposed({1}, {0, 0}, {1}, {-1}),
       "'output_padding' holds -1"},
      {kConvTranspose,
       {"f32[1,4,2]", "f32[4,3,2]", "f32[4]"},
       transposed({1}, {0, 0}, {1}, {0}),
       "bias has type f32[4]"},
  });
}

TEST(ConvTypes, Hostile) {
  const std::vector<std::string> good = {"f32[1,3,8,8]", "f32[4,3,3,3]"};
  expect_failures({
      {kConv, good, conv({0, 1}, {0, 0, 0, 0}, {1, 1}), "'strides' holds 0"},
      {kConv, good, conv({1}, {0, 0, 0, 0}, {1, 1}), "'strides' has 1 values, expected 2"},
      {kConv, good, conv({1, 1}, {0, 0}, {1, 1}), "'pads' has 2 values, expected 4"},
      {kConv, good, conv({1, 1}, {0, 0, -1, 0}, {1, 1}), "'pads' holds -1"},
      {kConv, good, conv({1, 1}, {0, 0, 0, INT64_MAX}, {1, 1}), "'pads' holds 9223372036854775807"},
      {kConv, good, conv({1, 1}, {0, 0, 0, 0}, {0, 1}), "'dilations' holds 0"},
      {kConv, good, conv({1, 1}, {0, 0, 0, 0}, {INT64_MIN, 1}), "'dilations' holds -9223372036854775808"},
      {kConv, good, conv({1, 1}, {0, 0, 0, 0}, {5, 1}), "too small for a window of 11"},
      {kConv, good, conv({1, 1}, {0, 0, 0, 0}, {int64_t{1} << 31, 1}), "too small for a window"},
      {kConv, good, conv({1, 1}, {0, 0, 0, 0}, {1, 1}, 0), "'groups' is 0"},
      {kConv, good, conv({1, 1}, {0, 0, 0, 0}, {1, 1}, 2), "expected x to have 6 channels"},
      {kConv,
       {"f32[1,9,8,8]", "f32[4,3,3,3]"},
       conv({1, 1}, {0, 0, 0, 0}, {1, 1}, 3),
       "4 output channels do not divide"},
      {kConv, {"f32[1,3,2,8]", "f32[4,3,3,3]"}, conv2d(), "too small for a window of 3"},
      {kConv, {"f32[1,3,8,8]", "f32[4,3,0,3]"}, conv2d(), "expected kernel sizes from 1"},
      {kConv, {"f32[1,3,8,8]", "f32[4,3,K,3]"}, conv2d(), "expected kernel sizes from 1"},
      {kConv, {"f32[1,3,8,8]", "f32[4,3,3]"}, conv2d(), "weights has type f32[4,3,3], expected rank 4"},
      {kConv, {"f32[3,8]", "f32[4,3]"}, conv({}, {}, {}), "expected rank 3 to 8"},
      {kConv, {"i32[1,3,8,8]", "i32[4,3,3,3]"}, conv2d(), "expected a floating-point type"},
      {kConv, {"f32[1,3,8,8]", "f64[4,3,3,3]"}, conv2d(), "expected the dtype of input 0"},
      {kConv,
       {"f32[1,3,8,8]", "f32[4,3,3,3]", "f32[5]"},
       conv2d(),
       "bias has type f32[5], expected shape [4]"},
      {kConv, {"f32[1,3,8,8]", "f32[4,3,3,3]", "_", "f32[1,4,5,6]"}, conv2d(), "residual has type"},
      {kConv, good, conv2d().set("act", text("swoosh")), "'act' is 'swoosh'"},
      {kConv, {"f32[1,3,H,8]", "f32[4,3,3,3]"}, conv({2, 2}, {0, 0, 0, 0}, {1, 1}), "give 'H' a number"},
      {kConv, {"f32[1,3,8,8]", "_"}, conv2d(), "input 1 is missing"},
  });
}

TEST(PoolTypes, Variants) {
  expect_types({
      {kMaxPool, {"f32[N,64,112,112]"}, max_pool({3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}), {"f32[N,64,56,56]"}},
      {kMaxPool, {"f32[N,4,8]"}, max_pool({3}, {1}, {0, 0}, {2}), {"f32[N,4,4]", "i64[N,4,4]"}},
      {kMaxPool, {"u8[1,1,5,5]"}, max_pool({2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}), {"u8[1,1,2,2]"}},
      {kMaxPool, {"f32[1,1,4,4]"}, max_pool({3, 3}, {2, 2}, {0, 0, 0, 0}, {1, 1}, true), {"f32[1,1,2,2]"}},
      {kMaxPool, {"f32[1,1,2H,5]"}, max_pool({2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, true), {"f32[1,1,H,3]"}},
      {OpKind::kLpPool,
       {"f32[1,2,6]"},
       Attrs{{"kernel", Ints{2}}, {"strides", Ints{2}}, {"pads", Ints{0, 0}}, {"p", num(2)}},
       {"f32[1,2,3]"}},
      {OpKind::kGlobalAveragePool, {"f32[N,64,7,7]"}, {}, {"f32[N,64,1,1]"}},
      {OpKind::kGlobalMaxPool, {"f32[N,64,H]"}, {}, {"f32[N,64,1]"}},
      {OpKind::kGlobalLpPool, {"f32[N,64,7,7,7]"}, {{"p", num(2)}}, {"f32[N,64,1,1,1]"}},
  });
}

// size, kernel, stride, pad at both ends -> floor, ceil
TEST(PoolTypes, CeilMode) {
  struct Case {
    int64_t size, kernel, stride, pad, floor, ceil;
  };
  for (const Case& c : std::vector<Case>{
           {4, 3, 2, 0, 1, 2},  // the second window hangs over the end
           {5, 3, 2, 0, 2, 2},  // exact
           {7, 2, 2, 0, 3, 4},
           {6, 3, 2, 1, 3, 4},
           {2, 1, 2, 0, 1, 1},  // plain ceil would start a window at 2, behind the input
           {4, 2, 3, 1, 2, 2},  // plain ceil would start a third window at 6 - 1, in the end padding
           {1, 1, 4, 0, 1, 1},
           {9, 5, 4, 2, 3, 3},
       }) {
    SCOPED_TRACE(fmt::format("size {} kernel {} stride {} pad {}", c.size, c.kernel, c.stride, c.pad));
    const std::vector<std::string> x = {fmt::format("f32[N,2,{}]", c.size)};
    const Ints pads{c.pad, c.pad};
    expect_types({
        {kAveragePool, x, pool({c.kernel}, {c.stride}, pads), {fmt::format("f32[N,2,{}]", c.floor)}},
        {kAveragePool, x, pool({c.kernel}, {c.stride}, pads, true), {fmt::format("f32[N,2,{}]", c.ceil)}},
    });
  }
}

TEST(PoolTypes, Hostile) {
  expect_failures({
      {kMaxPool, {"f32[1,1,5]"}, max_pool({0}, {1}, {0, 0}, {1}), "'kernel' holds 0"},
      {kMaxPool, {"f32[1,1,5]"}, max_pool({6}, {1}, {0, 0}, {1}), "too small for a window of 6"},
      {kMaxPool, {"f32[1,1,5]"}, max_pool({2}, {1}, {2, 0}, {1}), "windows hold only padding"},
      {kMaxPool, {"f32[1,1,5]"}, max_pool({2}, {1}, {0, 0}, {-2}), "'dilations' holds -2"},
      {kMaxPool, {"f32[1,5]"}, max_pool({}, {}, {}, {}), "expected rank 3"},
      {kMaxPool, {"bool[1,1,5]"}, max_pool({2}, {1}, {0, 0}, {1}), "expected a numeric type"},
      {kMaxPool, {"f32[1,1,5]"}, max_pool({2}, {1}, {0, 0}, {1}), "3 outputs, expected 1 to 2", 3},
      {kAveragePool, {"i32[1,1,5]"}, pool({2}, {1}, {0, 0}), "expected a floating-point type"},
      {kAveragePool, {"f32[1,1,5]"}, pool({2}, {1}, {0, 0}).set("ceil_mode", num(2)), "'ceil_mode' is 2"},
      {kAveragePool, {"f32[1,1,0]"}, pool({1}, {1}, {0, 0}), "too small"},
      {OpKind::kGlobalLpPool, {"f32[1,1,5]"}, {{"p", num(0)}}, "'p' is 0"},
      {OpKind::kGlobalMaxPool, {"f32[1,5]"}, {}, "expected rank 3"},
  });
}

}  // namespace
}  // namespace limber::testing
