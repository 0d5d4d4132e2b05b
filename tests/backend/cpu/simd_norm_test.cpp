#include <gtest/gtest.h>

#include "tests/backend/cpu/simd_test_util.h"

namespace limber {
namespace {

TEST(SimdNorm, SoftmaxOverEveryAxis) {
  for (OpKind op : {OpKind::kSoftmax, OpKind::kLogSoftmax}) {
    for (int64_t axis : {0, 1, 2}) {
      expect_same_as_reference({op, {random_tensor({3, 5, 17}, 1, -9, 9)}, {{"axis", axis}}});
      expect_same_as_reference({op, {random_tensor({2, 21, 33}, 1, -80, 80)}, {{"axis", axis}}});
    }
    expect_same_as_reference({op, {random_tensor({1000}, 1, 90, 110)}, {{"axis", int64_t{0}}}});
    expect_same_as_reference({op, {random_tensor({2, 21, 65, 63}, 1, -5, 5)}, {{"axis", int64_t{1}}}});
    expect_same_as_reference({op, {random_tensor({3, 197, 197}, 1, -5, 5)}, {{"axis", int64_t{2}}}});
    expect_same_as_reference({op, {random_tensor({0, 5}, 1)}, {{"axis", int64_t{1}}}});
    expect_same_as_reference({op, {random_tensor({5, 0}, 1)}, {{"axis", int64_t{1}}}});
  }
}

TEST(SimdNorm, LayerNormWithAndWithoutScaleAndBias) {
  for (int64_t cols : {1, 7, 64, 192, 333}) {
    const Tensor x = random_tensor({2, 5, cols}, 1, -3, 5), s = random_tensor({cols}, 2),
                 b = random_tensor({cols}, 3);
    const Attrs attrs = {{"axis", int64_t{2}}, {"epsilon", 1e-5}};
    expect_same_as_reference({OpKind::kLayerNorm, {x, s, b}, attrs});
    expect_same_as_reference({OpKind::kLayerNorm, {x, s}, attrs});
    expect_same_as_reference({OpKind::kLayerNorm, {x, Tensor(), b}, attrs});
    expect_same_as_reference({OpKind::kLayerNorm, {x}, attrs});
    expect_same_as_reference({OpKind::kLayerNorm, {x, s, b}, attrs, 3});
  }
  expect_same_as_reference(
      {OpKind::kLayerNorm,
       {random_tensor({3, 4, 31}, 1), random_tensor({4, 31}, 2), random_tensor({4, 31}, 3)},
       {{"axis", int64_t{1}}, {"epsilon", 1e-5}}});
  expect_same_as_reference(
      {OpKind::kLayerNorm,
       {random_tensor({2, 197, 192}, 1), random_tensor({192}, 2), random_tensor({192}, 3)},
       {{"axis", int64_t{2}}, {"epsilon", 1e-6}}});
  expect_unsupported({OpKind::kLayerNorm,
                      {random_tensor({3, 4, 31}, 1), random_tensor({31}, 2)},
                      {{"axis", int64_t{1}}, {"epsilon", 1e-5}}});
}

TEST(SimdNorm, BatchNorm) {
  for (const Shape& shape : {Shape{2, 5, 7, 9}, Shape{3, 17}, Shape{1, 33, 40, 31}, Shape{0, 3, 2, 2}}) {
    const int64_t c = shape.dim(1);
    expect_same_as_reference({OpKind::kBatchNorm,
                              {random_tensor(shape, 1), random_tensor({c}, 2), random_tensor({c}, 3),
                               random_tensor({c}, 4), random_tensor({c}, 5, 0.5, 2.0)},
                              {{"epsilon", 1e-5}}});
  }
}

TEST(SimdNorm, InstanceAndGroupNorm) {
  for (const Shape& shape : {Shape{2, 6, 7, 9}, Shape{1, 6, 150, 131}, Shape{3, 6, 19}}) {
    const std::vector<Tensor> inputs = {random_tensor(shape, 1, -1, 3), random_tensor({6}, 2),
                                        random_tensor({6}, 3)};
    expect_same_as_reference({OpKind::kInstanceNorm, inputs, {{"epsilon", 1e-5}}});
    for (int64_t groups : {1, 2, 3, 6}) {
      expect_same_as_reference({OpKind::kGroupNorm, inputs, {{"epsilon", 1e-5}, {"groups", groups}}});
    }
  }
}

TEST(SimdNorm, MayBeWrittenOverTheInput) {
  const Tensor x = random_tensor({2, 6, 40, 70}, 1), vector = random_tensor({6}, 2, 0.5, 2.0);
  for (int64_t axis : {1, 3}) {
    expect_same_in_place({OpKind::kSoftmax, {x}, {{"axis", axis}}});
    expect_same_in_place({OpKind::kLogSoftmax, {x}, {{"axis", axis}}});
  }
  expect_same_in_place({OpKind::kLayerNorm, {x}, {{"axis", int64_t{3}}, {"epsilon", 1e-5}}});
  expect_same_in_place({OpKind::kInstanceNorm, {x, vector, vector}, {{"epsilon", 1e-5}}});
  expect_same_in_place({OpKind::kBatchNorm, {x, vector, vector, vector, vector}, {{"epsilon", 1e-5}}});
}

TEST(SimdNorm, Lrn) {
  for (int64_t size : {1, 2, 3, 5}) {
    const Attrs attrs = {{"size", size}, {"alpha", 1e-2}, {"beta", 0.75}, {"bias", 1.0}};
    expect_same_as_reference({OpKind::kLRN, {random_tensor({2, 7, 5, 9}, 1, -9, 9)}, attrs});
    expect_same_as_reference({OpKind::kLRN, {random_tensor({1, 24, 27, 27}, 1, -9, 9)}, attrs});
  }
}

}  // namespace
}  // namespace limber
