#include "tests/backend/ref/run_op.h"

namespace limber::test {
namespace {

// Resizes a vector.
Tensor resize(const Tensor& x, int64_t size, double scale, const char* mode, const char* coordinates,
              const Attrs& more = {}) {
  Attrs attrs = {
      {"shape", Shape{size}}, {"scales", Floats{scale}}, {"mode", mode}, {"coordinates", coordinates}};
  for (const auto& [name, value] : more.entries()) attrs.set(name, value);
  return run(OpKind::kResize, {x}, attrs);
}

TEST(RefResize, LinearKnowsEveryCoordinateRule) {
  const Tensor x = f32({2}, {1, 2});
  const TensorType t{DType::kF32, {4}};
  expect(resize(x, 4, 2, "linear", "half_pixel"), t, {1, 1.25, 1.75, 2});
  expect(resize(x, 4, 2, "linear", "pytorch_half_pixel"), t, {1, 1.25, 1.75, 2});
  expect(resize(x, 4, 2, "linear", "half_pixel_symmetric"), t, {1, 1.25, 1.75, 2});
  expect(resize(x, 4, 2, "linear", "align_corners"), t, {1, 4.0 / 3, 5.0 / 3, 2});
  expect(resize(x, 4, 2, "linear", "asymmetric"), t, {1, 1.5, 2, 2});
  expect(resize(x, 4, 2, "linear", "tf_half_pixel_for_nn"), t, {1.25, 1.75, 2, 2});
  expect(resize(x, 1, 0.5, "linear", "pytorch_half_pixel"), {DType::kF32, {1}}, {1});
  expect(resize(x, 1, 0.5, "linear", "half_pixel"), {DType::kF32, {1}}, {1.5});
  expect(resize(x, 1, 0.5, "linear", "align_corners"), {DType::kF32, {1}}, {1});
}

TEST(RefResize, RulesUseTheScaleThatWasGiven) {
  // 4 * 0.6 = 2.4 elements, of which 2 are made.
  const Tensor x = counting({4});
  const TensorType t{DType::kF32, {2}};
  expect(resize(x, 2, 0.6, "linear", "align_corners"), t, {0, 3 / 1.4});
  expect(resize(x, 2, 0.6, "linear", "asymmetric"), t, {0, 1 / 0.6});
  expect(resize(x, 2, 0.6, "linear", "half_pixel"), t, {1.0 / 3, 2});
  expect(resize(x, 2, 0.6, "linear", "half_pixel_symmetric"), t, {2.0 / 3, 7.0 / 3});
}

TEST(RefResize, NearestKnowsEveryRounding) {
  const Tensor x = f32({4}, {1, 2, 3, 4});
  const TensorType t{DType::kF32, {2}};
  const auto rounding = [](const char* mode) { return Attrs{{"nearest", mode}}; };
  expect(resize(x, 2, 0.5, "nearest", "half_pixel", rounding("round_prefer_floor")), t, {1, 3});
  expect(resize(x, 2, 0.5, "nearest", "half_pixel", rounding("round_prefer_ceil")), t, {2, 4});
  expect(resize(x, 2, 0.5, "nearest", "half_pixel", rounding("floor")), t, {1, 3});
  expect(resize(x, 2, 0.5, "nearest", "half_pixel", rounding("ceil")), t, {2, 4});
  expect(resize(x, 2, 0.5, "nearest", "tf_half_pixel_for_nn"), t, {2, 4});
  const Tensor bytes = tensor<uint8_t>({2}, {7, 200});
  expect(resize(bytes, 4, 2, "nearest", "asymmetric", rounding("floor")), {DType::kU8, {4}},
         {7, 7, 200, 200});
  EXPECT_EQ(resize(i64({1}, {INT64_MAX}), 2, 2, "nearest", "half_pixel").data<int64_t>()[1], INT64_MAX);
}

TEST(RefResize, NearestDividesExactly) {
  // 5 / (10 / 6) is 3, whatever the rounding of the scale.
  expect(resize(counting({6}), 10, 10.0 / 6, "nearest", "asymmetric", {{"nearest", "floor"}}),
         {DType::kF32, {10}}, {0, 0, 1, 1, 2, 3, 3, 4, 4, 5});
}

TEST(RefResize, CubicHasTwoEdgeRules) {
  const Tensor x = f32({4}, {1, 2, 3, 4});
  const Tensor y = resize(x, 8, 2, "cubic", "asymmetric");
  expect(y, {DType::kF32, {8}}, {1, 1.40625, 2, 2.5, 3, 3.59375, 4, 4.09375});
  const Tensor z = resize(x, 8, 2, "cubic", "asymmetric", {{"exclude_outside", int64_t{1}}});
  EXPECT_NEAR(z.data<float>()[1], 1.5 / 1.09375, 1e-6);
  EXPECT_NEAR(z.data<float>()[3], 2.5, 1e-6);
  // With the parameter -0.5: weights -1/16, 9/16, 9/16, -1/16.
  const Tensor a = resize(x, 8, 2, "cubic", "asymmetric", {{"cubic_coeff", -0.5}});
  EXPECT_NEAR(a.data<float>()[1], (-1 + 9 + 18 - 3) / 16.0, 1e-6);
}

TEST(RefResize, CropsWithARegion) {
  const Tensor x = counting({4});
  const auto roi = [](double from, double to) {
    return Attrs{{"roi", Floats{from, to}}, {"extrapolation", 9.0}};
  };
  expect(resize(x, 3, 0.75, "linear", "tf_crop_and_resize", roi(0.5, 2)), {DType::kF32, {3}}, {1.5, 9, 9});
  expect(resize(x, 3, 0.75, "linear", "tf_crop_and_resize", roi(0, 0.5)), {DType::kF32, {3}}, {0, 0.75, 1.5});
  expect(resize(x, 1, 0.25, "linear", "tf_crop_and_resize", roi(0, 1)), {DType::kF32, {1}}, {1.5});
  expect(resize(x, 2, 0.5, "nearest", "tf_crop_and_resize", roi(-1, 1)), {DType::kF32, {2}}, {9, 3});
}

TEST(RefResize, AntialiasWidensTheFilter) {
  const Tensor x = f32({4}, {1, 2, 3, 4});
  const Attrs antialias = {{"antialias", int64_t{1}}};
  expect(resize(x, 2, 0.5, "linear", "half_pixel", antialias), {DType::kF32, {2}}, {1.625, 3.375});
  expect(resize(f32({2}, {1, 2}), 4, 2, "linear", "half_pixel", antialias), {DType::kF32, {4}},
         {1, 1.25, 1.75, 2});
}

TEST(RefResize, WorksOnSeveralAxes) {
  const Attrs attrs = {{"shape", Shape{1, 1, 4, 4}},
                       {"scales", Floats{1, 1, 2, 2}},
                       {"mode", "linear"},
                       {"coordinates", "half_pixel"}};
  expect(run(OpKind::kResize, {f32({1, 1, 2, 2}, {1, 2, 3, 4})}, attrs), {DType::kF32, {1, 1, 4, 4}},
         {1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4});
  const Tensor empty = run(
      OpKind::kResize, {f32({0, 2}, {})},
      {{"shape", Shape{0, 4}}, {"scales", Floats{1, 2}}, {"mode", "linear"}, {"coordinates", "half_pixel"}});
  expect(empty, {DType::kF32, {0, 4}}, {});
}

}  // namespace
}  // namespace limber::test
