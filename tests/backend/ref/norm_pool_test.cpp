#include <cmath>

#include "tests/backend/ref/run_op.h"

namespace limber::test {
namespace {

TEST(RefBatchNorm, ScalesByChannel) {
  const Tensor x = f32({1, 2, 2}, {1, 2, 3, 4});
  const Tensor y =
      run(OpKind::kBatchNorm, {x, f32({2}, {2, 1}), f32({2}, {0, 5}), f32({2}, {1, 3}), f32({2}, {3, 0})},
          {{"epsilon", 1.0}});
  expect(y, {DType::kF32, {1, 2, 2}}, {0, 1, 5, 6});
}

TEST(RefBatchNorm, TrainingUsesBatchStatistics) {
  // Channel 0 is {1, 3}: mean 2, variance 1. Channel 1 is {5, 5}: mean 5, variance 0.
  const Tensor x = f32({2, 2, 1}, {1, 5, 3, 5});
  const auto y = run_all(OpKind::kBatchNormTraining,
                         {x, f32({2}, {2, 1}), f32({2}, {1, 7}), f32({2}, {10, 10}), f32({2}, {4, 4})},
                         {{"epsilon", 3.0}, {"momentum", 0.75}}, 3);
  expect(y[0], {DType::kF32, {2, 2, 1}}, {0, 7, 2, 7});
  expect(y[1], {DType::kF32, {2}}, {8, 8.75});
  expect(y[2], {DType::kF32, {2}}, {3.25, 3});
}

TEST(RefLayerNorm, NormalisesTheLastAxes) {
  const Tensor x = f32({2, 2}, {1, 3, 10, 10});
  const auto y = run_all(OpKind::kLayerNorm, {x, f32({2}, {2, 4}), f32({2}, {1, 0})},
                         {{"axis", int64_t{1}}, {"epsilon", 3.0}}, 3);
  expect(y[0], {DType::kF32, {2, 2}}, {0, 2, 1, 0});
  expect(y[1], {DType::kF32, {2, 1}}, {2, 10});
  expect(y[2], {DType::kF32, {2, 1}}, {0.5, 1 / std::sqrt(3.0)});
}

TEST(RefLayerNorm, ScaleAndBiasAreOptional) {
  const Tensor x = f32({1, 2, 2}, {1, 3, 1, 3});
  const Attrs attrs = {{"axis", int64_t{1}}, {"epsilon", 3.0}};
  expect(run(OpKind::kLayerNorm, {x}, attrs), {DType::kF32, {1, 2, 2}}, {-0.5, 0.5, -0.5, 0.5});
  expect(run(OpKind::kLayerNorm, {x, Tensor(), f32({2, 2}, {1, 2, 3, 4})}, attrs), {DType::kF32, {1, 2, 2}},
         {0.5, 2.5, 2.5, 4.5});
}

TEST(RefInstanceNorm, NormalisesEveryPlane) {
  const Tensor x = f32({1, 2, 2}, {1, 3, 7, 7});
  expect(run(OpKind::kInstanceNorm, {x, f32({2}, {2, 1}), f32({2}, {1, 3})}, {{"epsilon", 3.0}}),
         {DType::kF32, {1, 2, 2}}, {0, 2, 3, 3});
}

TEST(RefGroupNorm, SharesStatisticsInAGroup) {
  const Tensor x = f32({1, 4, 1}, {1, 3, 7, 7});
  expect(run(OpKind::kGroupNorm, {x, f32({4}, {2, 4, 1, 1}), f32({4}, {0, 0, 1, 2})},
             {{"groups", int64_t{2}}, {"epsilon", 3.0}}),
         {DType::kF32, {1, 4, 1}}, {-1, 2, 1, 2});
}

TEST(RefLRN, DividesByNeighbours) {
  const Tensor x = f32({1, 4, 1}, {1, 2, 3, 4});
  const auto attrs = [](int64_t size) {
    return Attrs{{"size", size}, {"alpha", static_cast<double>(size)}, {"beta", 1.0}, {"bias", 1.0}};
  };
  expect(run(OpKind::kLRN, {x}, attrs(3)), {DType::kF32, {1, 4, 1}}, {1.0 / 6, 2.0 / 15, 3.0 / 30, 4.0 / 26});
  // An even size reaches further up than down.
  expect(run(OpKind::kLRN, {x}, attrs(2)), {DType::kF32, {1, 4, 1}}, {1.0 / 6, 2.0 / 14, 3.0 / 26, 4.0 / 17});
}

TEST(RefLpNorm, DividesByTheNorm) {
  const Tensor x = f32({3, 2}, {3, -4, 0, 0, 1, 1});
  const auto attrs = [](int64_t p) { return Attrs{{"axis", int64_t{1}}, {"p", p}}; };
  expect(run(OpKind::kLpNorm, {x}, attrs(2)), {DType::kF32, {3, 2}},
         {0.6, -0.8, 0, 0, std::sqrt(0.5), std::sqrt(0.5)});
  expect(run(OpKind::kLpNorm, {x}, attrs(1)), {DType::kF32, {3, 2}}, {3.0 / 7, -4.0 / 7, 0, 0, 0.5, 0.5});
}

Attrs pool_attrs(Ints kernel, Ints strides, Ints pads, bool ceil_mode = false) {
  return {{"kernel", kernel}, {"strides", strides}, {"pads", pads}, {"ceil_mode", int64_t{ceil_mode}}};
}
Attrs max_attrs(Ints kernel, Ints strides, Ints pads, Ints dilations, bool ceil_mode = false,
                int64_t order = 0) {
  Attrs attrs = pool_attrs(kernel, strides, pads, ceil_mode);
  attrs.set("dilations", dilations).set("storage_order", order);
  return attrs;
}

TEST(RefMaxPool, TakesTheFirstOfTheLargest) {
  const Tensor x = f32({1, 1, 2, 3}, {5, 5, 1, 2, 7, 7});
  const auto y = run_all(OpKind::kMaxPool, {x}, max_attrs({2, 2}, {1, 1}, {0, 0, 0, 0}, {1, 1}), 2);
  expect(y[0], {DType::kF32, {1, 1, 1, 2}}, {7, 7});
  expect(y[1], {DType::kI64, {1, 1, 1, 2}}, {4, 4});
  const auto rows = run_all(OpKind::kMaxPool, {x}, max_attrs({1, 2}, {1, 1}, {0, 0, 0, 0}, {1, 1}), 2);
  expect(rows[1], {DType::kI64, {1, 1, 2, 2}}, {0, 1, 4, 4});
}

TEST(RefMaxPool, NumbersColumnsFirstOnRequest) {
  const Tensor x = counting({1, 2, 2, 3});
  const auto y = run_all(OpKind::kMaxPool, {x}, max_attrs({2, 2}, {1, 1}, {0, 0, 0, 0}, {1, 1}, false, 1), 2);
  expect(y[0], {DType::kF32, {1, 2, 1, 2}}, {4, 5, 10, 11});
  expect(y[1], {DType::kI64, {1, 2, 1, 2}}, {3, 5, 9, 11});
}

TEST(RefMaxPool, IgnoresPaddingAndDilates) {
  const Tensor x = f32({1, 1, 4}, {-1, -2, -3, -4});
  expect(run(OpKind::kMaxPool, {x}, max_attrs({3}, {1}, {1, 1}, {1})), {DType::kF32, {1, 1, 4}},
         {-1, -1, -2, -3});
  expect(run(OpKind::kMaxPool, {x}, max_attrs({2}, {1}, {0, 0}, {2})), {DType::kF32, {1, 1, 2}}, {-1, -2});
  expect(run(OpKind::kMaxPool, {x}, max_attrs({3}, {2}, {1, 1}, {2})), {DType::kF32, {1, 1, 1}}, {-2});
}

TEST(RefMaxPool, CeilModeKeepsTheRest) {
  const Tensor x = counting({1, 1, 4, 4}, 1);
  expect(run(OpKind::kMaxPool, {x}, max_attrs({3, 3}, {2, 2}, {0, 0, 0, 0}, {1, 1}, true)),
         {DType::kF32, {1, 1, 2, 2}}, {11, 12, 15, 16});
  const Tensor bytes = tensor<uint8_t>({1, 1, 3}, {3, 200, 7});
  expect(run(OpKind::kMaxPool, {bytes}, max_attrs({2}, {2}, {0, 0}, {1}, true)), {DType::kU8, {1, 1, 2}},
         {200, 7});
}

TEST(RefAveragePool, CountsPaddingOnRequest) {
  const Tensor x = f32({1, 1, 3}, {2, 4, 6});
  Attrs attrs = pool_attrs({2}, {1}, {1, 1});
  expect(run(OpKind::kAveragePool, {x}, attrs), {DType::kF32, {1, 1, 4}}, {2, 3, 5, 6});
  attrs.set("count_include_pad", int64_t{1});
  expect(run(OpKind::kAveragePool, {x}, attrs), {DType::kF32, {1, 1, 4}}, {1, 3, 5, 3});
}

TEST(RefAveragePool, CeilModeNeverCountsBeyondThePadding) {
  const Tensor x = counting({1, 1, 4, 4}, 1);
  Attrs attrs = pool_attrs({3, 3}, {2, 2}, {0, 0, 0, 0}, true);
  expect(run(OpKind::kAveragePool, {x}, attrs), {DType::kF32, {1, 1, 2, 2}}, {6, 7.5, 12, 13.5});
  attrs.set("count_include_pad", int64_t{1});
  expect(run(OpKind::kAveragePool, {x}, attrs), {DType::kF32, {1, 1, 2, 2}}, {6, 7.5, 12, 13.5});
  // Windows of {pad, 1, 2}, {2, 3, 4}, {4, pad}.
  const Tensor line = f32({1, 1, 4}, {1, 2, 3, 4});
  Attrs padded = pool_attrs({3}, {2}, {1, 1}, true);
  padded.set("count_include_pad", int64_t{1});
  expect(run(OpKind::kAveragePool, {line}, padded), {DType::kF32, {1, 1, 3}}, {1, 3, 2});
}

TEST(RefLpPool, TakesTheNormOfTheWindow) {
  const Tensor x = f32({1, 1, 4}, {3, -4, 0, 5});
  Attrs attrs = {{"kernel", Ints{2}}, {"strides", Ints{2}}, {"pads", Ints{0, 0}}, {"p", int64_t{2}}};
  expect(run(OpKind::kLpPool, {x}, attrs), {DType::kF32, {1, 1, 2}}, {5, 5});
  attrs.set("p", int64_t{1});
  expect(run(OpKind::kLpPool, {x}, attrs), {DType::kF32, {1, 1, 2}}, {7, 5});
}

TEST(RefGlobalPool, ReducesEveryPlane) {
  const Tensor x = f32({1, 2, 1, 2}, {3, -4, 6, 8});
  expect(run(OpKind::kGlobalAveragePool, {x}), {DType::kF32, {1, 2, 1, 1}}, {-0.5, 7});
  expect(run(OpKind::kGlobalMaxPool, {x}), {DType::kF32, {1, 2, 1, 1}}, {3, 8});
  expect(run(OpKind::kGlobalLpPool, {x}, {{"p", int64_t{2}}}), {DType::kF32, {1, 2, 1, 1}}, {5, 10});
}

}  // namespace
}  // namespace limber::test
