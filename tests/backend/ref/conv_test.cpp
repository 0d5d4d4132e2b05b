#include "tests/backend/ref/run_op.h"

namespace limber::test {
namespace {

Attrs conv_attrs(Ints strides, Ints pads, Ints dilations, int64_t groups = 1) {
  return {{"strides", strides}, {"pads", pads}, {"dilations", dilations}, {"groups", groups}};
}

TEST(RefConv, SumsTheWindow) {
  const Tensor x = counting({1, 1, 3, 3}), w = f32({1, 1, 2, 2}, {1, 1, 1, 1});
  const Attrs plain = conv_attrs({1, 1}, {0, 0, 0, 0}, {1, 1});
  expect(run(OpKind::kConv, {x, w}, plain), {DType::kF32, {1, 1, 2, 2}}, {8, 12, 20, 24});
  for (DType t : {DType::kF64, DType::kF16, DType::kBF16}) {
    expect(run(OpKind::kConv, {as(x, t), as(w, t)}, plain), {t, {1, 1, 2, 2}}, {8, 12, 20, 24});
  }
}

TEST(RefConv, PadsStridesAndDilates) {
  const Tensor x = counting({1, 1, 3, 3}, 1);
  const Tensor w = f32({1, 1, 2, 2}, {1, 10, 100, 1000});
  // Pads: one row above, one column to the right.
  expect(run(OpKind::kConv, {x, w}, conv_attrs({2, 2}, {1, 0, 0, 1}, {1, 1})), {DType::kF32, {1, 1, 2, 2}},
         {2100, 300, 8754, 906});
  expect(run(OpKind::kConv, {x, w}, conv_attrs({1, 1}, {0, 0, 0, 0}, {2, 2})), {DType::kF32, {1, 1, 1, 1}},
         {9731});
}

TEST(RefConv, KeepsGroupsApart) {
  const Tensor x = f32({1, 2, 2}, {1, 2, 3, 4});
  const Tensor w = f32({4, 1, 1}, {1, 10, 100, 1000}), bias = f32({4}, {0.5, 0, 0, 0});
  expect(run(OpKind::kConv, {x, w, bias}, conv_attrs({1}, {0, 0}, {1}, 2)), {DType::kF32, {1, 4, 2}},
         {1.5, 2.5, 10, 20, 300, 400, 3000, 4000});
}

TEST(RefConv, AddsBiasAndResidualBeforeTheActivation) {
  const Tensor x = f32({1, 1, 1, 2}, {1, -4}), w = f32({2, 1, 1, 1}, {1, 2});
  const Tensor bias = f32({2}, {1, -1}), residual = f32({1, 2, 1, 2}, {0, 1, 2, 3});
  Attrs attrs = conv_attrs({1, 1}, {0, 0, 0, 0}, {1, 1});
  attrs.set("act", "relu");
  expect(run(OpKind::kConv, {x, w, bias, residual}, attrs), {DType::kF32, {1, 2, 1, 2}}, {2, 0, 3, 0});
  expect(run(OpKind::kConv, {x, w, Tensor(), residual}, attrs), {DType::kF32, {1, 2, 1, 2}}, {1, 0, 4, 0});
  attrs.set("act", "leaky_relu").set("act_alpha", 0.5);
  expect(run(OpKind::kConv, {x, w, bias}, attrs), {DType::kF32, {1, 2, 1, 2}}, {2, -1.5, 1, -4.5});
  attrs.set("act", "clip").set("act_alpha", 0.0).set("act_beta", 1.5);
  expect(run(OpKind::kConv, {x, w}, attrs), {DType::kF32, {1, 2, 1, 2}}, {1, 0, 1.5, 0});
}

TEST(RefConv, HasThreeSpatialAxes) {
  const Tensor x = counting({1, 1, 2, 2, 2}), w = f32({1, 1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  expect(run(OpKind::kConv, {x, w}, conv_attrs({1, 1, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1})),
         {DType::kF32, {1, 1, 1, 1, 1}}, {168});
}

Attrs transpose_attrs(Ints strides, Ints pads, Ints dilations, Ints output_padding, int64_t groups = 1) {
  Attrs attrs = conv_attrs(strides, pads, dilations, groups);
  attrs.set("output_padding", output_padding);
  return attrs;
}

TEST(RefConvTranspose, SpreadsTheInput) {
  const Tensor x = f32({1, 1, 2}, {1, 10}), w = f32({1, 1, 3}, {1, 2, 3});
  expect(run(OpKind::kConvTranspose, {x, w}, transpose_attrs({1}, {0, 0}, {1}, {0})),
         {DType::kF32, {1, 1, 4}}, {1, 12, 23, 30});
  expect(run(OpKind::kConvTranspose, {x, w}, transpose_attrs({2}, {1, 0}, {1}, {1})),
         {DType::kF32, {1, 1, 5}}, {2, 13, 20, 30, 0});
  expect(run(OpKind::kConvTranspose, {x, w}, transpose_attrs({1}, {0, 0}, {2}, {0})),
         {DType::kF32, {1, 1, 6}}, {1, 10, 2, 20, 3, 30});
}

TEST(RefConvTranspose, MixesChannelsWithinGroups) {
  const Tensor x = f32({1, 2, 1, 1}, {1, 10});
  const Tensor w = f32({2, 2, 1, 1}, {1, 2, 3, 4});
  const auto attrs = [](int64_t groups) {
    return transpose_attrs({1, 1}, {0, 0, 0, 0}, {1, 1}, {0, 0}, groups);
  };
  expect(run(OpKind::kConvTranspose, {x, w, f32({2}, {100, 200})}, attrs(1)), {DType::kF32, {1, 2, 1, 1}},
         {131, 242});
  expect(run(OpKind::kConvTranspose, {x, w}, attrs(2)), {DType::kF32, {1, 4, 1, 1}}, {1, 2, 30, 40});
}

}  // namespace
}  // namespace limber::test
