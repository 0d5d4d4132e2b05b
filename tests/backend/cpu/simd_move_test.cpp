#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "tests/backend/cpu/simd_test_util.h"

namespace limber {
namespace {

using Ints = std::vector<int64_t>;

TEST(SimdMove, TransposeByEveryPermutation) {
  for (const Shape& shape :
       {Shape{2, 3, 4, 5}, Shape{1, 17, 1, 33}, Shape{3, 16, 32, 2}, Shape{0, 2, 3, 4}}) {
    Ints perm = {0, 1, 2, 3};
    do {
      expect_same_as_reference({OpKind::kTranspose, {random_tensor(shape, 1)}, {{"perm", perm}}});
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
}

TEST(SimdMove, TransposeOfCommonShapesAndOtherTypes) {
  expect_same_as_reference(
      {OpKind::kTranspose, {random_tensor({1, 197, 3, 64}, 1)}, {{"perm", Ints{0, 2, 1, 3}}}});
  expect_same_as_reference({OpKind::kTranspose, {random_tensor({2, 67, 131}, 1)}, {{"perm", Ints{0, 2, 1}}}});
  expect_same_as_reference(
      {OpKind::kTranspose, {random_tensor({1, 192, 14, 14}, 1)}, {{"perm", Ints{0, 2, 3, 1}}}});
  expect_same_as_reference({OpKind::kTranspose, {random_tensor({512, 512}, 1)}, {{"perm", Ints{1, 0}}}});
  expect_same_as_reference({OpKind::kTranspose, {random_ints({37, 41}, 1, 0, 99)}, {{"perm", Ints{1, 0}}}});
  expect_same_as_reference({OpKind::kTranspose, {random_tensor({}, 1)}, {{"perm", Ints{}}}});
  Tensor bytes = *Tensor::allocate({DType::kU8, {3, 20, 33}});
  std::iota(bytes.data<uint8_t>().begin(), bytes.data<uint8_t>().end(), uint8_t{0});
  expect_same_as_reference({OpKind::kTranspose, {bytes}, {{"perm", Ints{2, 1, 0}}}});
}

TEST(SimdMove, DepthAndSpace) {
  for (int64_t b : {1, 2, 3}) {
    const Tensor deep = random_tensor({2, 4 * b * b, 5, 17}, 1),
                 wide = random_tensor({2, 4, 5 * b, 17 * b}, 1);
    expect_same_as_reference({OpKind::kDepthToSpace, {deep}, {{"blocksize", b}}});
    expect_same_as_reference({OpKind::kDepthToSpace, {deep}, {{"blocksize", b}, {"mode", "CRD"}}});
    expect_same_as_reference({OpKind::kSpaceToDepth, {wide}, {{"blocksize", b}}});
  }
}

TEST(SimdMove, ConcatAndSplitAlongEveryAxis) {
  for (int64_t axis : {0, 1, 2}) {
    const auto part = [&](int64_t size, uint64_t seed) {
      Shape shape{3, 4, 5};
      shape[static_cast<int>(axis)] = size;
      return random_tensor(shape, seed);
    };
    expect_same_as_reference(
        {OpKind::kConcat, {part(2, 1), part(0, 2), part(7, 3), part(1, 4)}, {{"axis", axis}}});
    expect_same_as_reference(
        {OpKind::kSplit, {part(10, 1)}, {{"axis", axis}, {"sizes", Ints{2, 0, 7, 1}}}, 4});
  }
  expect_same_as_reference({OpKind::kConcat,
                            {random_tensor({2, 24, 31, 33}, 1), random_tensor({2, 12, 31, 33}, 2)},
                            {{"axis", int64_t{1}}}});
  expect_same_as_reference({OpKind::kSplit,
                            {random_tensor({2, 36, 31, 33}, 1)},
                            {{"axis", int64_t{1}}, {"sizes", Ints{1, 24, 11}}},
                            3});
  expect_same_as_reference(
      {OpKind::kConcat, {random_ints({3}, 1, 0, 9), random_ints({5}, 2, 0, 9)}, {{"axis", int64_t{0}}}});
  expect_same_as_reference(
      {OpKind::kConcat, {random_tensor({0, 2}, 1), random_tensor({0, 3}, 2)}, {{"axis", int64_t{1}}}});
}

TEST(SimdMove, SliceForwardsAndBackwards) {
  const Tensor x = random_tensor({4, 9, 21}, 1);
  const auto slice = [&](Ints axes, Ints starts, Ints ends, Ints steps) {
    expect_same_as_reference(
        {OpKind::kSlice, {x}, {{"axes", axes}, {"starts", starts}, {"ends", ends}, {"steps", steps}}});
  };
  slice({2}, {3}, {17}, {1});
  slice({2}, {0}, {INT64_MAX}, {2});
  slice({2}, {-1}, {INT64_MIN}, {-3});
  slice({0, 1}, {1, 8}, {3, 0}, {1, -2});
  slice({1}, {-100}, {100}, {4});
  slice({1}, {5}, {2}, {1});
  slice({0}, {2}, {3}, {INT64_MAX});
  slice({0, 1, 2}, {1, 1, 1}, {4, 8, 20}, {2, 3, 1});
  expect_same_as_reference(
      {OpKind::kSlice,
       {random_tensor({2, 30, 40, 50}, 1)},
       {{"axes", Ints{2, 3}}, {"starts", Ints{0, 0}}, {"ends", Ints{40, 50}}, {"steps", Ints{2, 2}}}});
}

TEST(SimdMove, ExpandAndTile) {
  expect_same_as_reference({OpKind::kExpand, {random_tensor({3, 1, 5}, 1)}, {{"shape", Shape{2, 3, 4, 5}}}});
  expect_same_as_reference({OpKind::kExpand, {random_tensor({3, 1}, 1)}, {{"shape", Shape{3, 7000}}}});
  expect_same_as_reference({OpKind::kExpand, {random_tensor({1}, 1)}, {{"shape", Shape{0, 3}}}});
  expect_same_as_reference({OpKind::kTile, {random_tensor({2, 3, 5}, 1)}, {{"repeats", Ints{1, 2, 3}}}});
  expect_same_as_reference(
      {OpKind::kTile, {random_tensor({1, 3, 1, 2}, 1)}, {{"repeats", Ints{2, 1, 4, 2}}}});
  expect_same_as_reference({OpKind::kTile, {random_ints({7}, 1, 0, 9)}, {{"repeats", Ints{3}}}});
  expect_same_as_reference({OpKind::kTile, {random_tensor({2, 3}, 1)}, {{"repeats", Ints{0, 2}}}});
}

TEST(SimdMove, GatherAlongEveryAxis) {
  const Tensor indices = Tensor::from<int64_t>({0, 2, -1, 1, 2, -3}, {2, 3});
  for (int64_t axis : {0, 1, 2}) {
    expect_same_as_reference({OpKind::kGather, {random_tensor({3, 4, 5}, 1), indices}, {{"axis", axis}}});
    expect_same_as_reference({OpKind::kGather, {random_ints({3, 4, 5}, 1, 0, 9), indices}, {{"axis", axis}}});
    expect_same_as_reference(
        {OpKind::kGather, {random_tensor({3, 4, 5}, 1), Tensor::scalar(int32_t{1})}, {{"axis", axis}}});
  }
  expect_same_as_reference({OpKind::kGather,
                            {random_tensor({100, 777}, 1), random_ints({50}, 2, -100, 99)},
                            {{"axis", int64_t{0}}}});
}

TEST(SimdMove, IndicesOutsideAreClamped) {
  const Tensor indices = Tensor::from<int64_t>({99, -99, INT64_MIN, INT64_MAX}, {4});
  expect_same_as_reference({OpKind::kGather, {random_tensor({3, 4}, 1), indices}, {{"axis", int64_t{0}}}});
}

TEST(SimdMove, PadInEveryMode) {
  for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
    const auto pad = [&](const Tensor& x, Ints pads) {
      expect_same_as_reference({OpKind::kPad, {x}, {{"pads", pads}, {"mode", mode}, {"value", 1.5}}});
    };
    pad(random_tensor({2, 3, 7, 9}, 1), {0, 0, 1, 2, 0, 0, 3, 4});
    pad(random_tensor({2, 3, 7, 9}, 1), {0, 1, 2, 0, 1, 0, 0, 3});
    pad(random_tensor({5, 6}, 1), {-1, 2, 1, -2});
    pad(random_tensor({5, 6}, 1), {1, -2, -3, -1});
    pad(random_tensor({1, 16, 70, 33}, 1), {0, 0, 3, 3, 0, 0, 3, 3});
    pad(random_tensor({4}, 1), {0, 0});
  }
  expect_same_as_reference(
      {OpKind::kPad, {random_ints({3, 4}, 1, 0, 9)}, {{"pads", Ints{1, 1, 1, 1}}, {"value", -7.0}}});
  expect_same_as_reference(
      {OpKind::kPad, {Tensor::from<uint8_t>({1, 2, 3}, {3})}, {{"pads", Ints{1, 1}}, {"value", 300.0}}});
  expect_same_as_reference({OpKind::kPad,
                            {random_tensor({5}, 1)},
                            {{"pads", Ints{1, 1}}, {"value", -std::numeric_limits<double>::infinity()}}});
  expect_same_as_reference({OpKind::kPad, {random_tensor({0, 2}, 1)}, {{"pads", Ints{1, 1, 1, 1}}}});
}

NodeCase resize(const Tensor& x, const Shape& to, const char* mode, const char* coordinates,
                const char* nearest) {
  std::vector<double> scales;
  for (int d = 0; d < to.rank(); ++d) {
    scales.push_back(static_cast<double>(to.dim(d)) / static_cast<double>(x.shape().dim(d)));
  }
  return {OpKind::kResize,
          {x},
          {{"shape", to},
           {"scales", scales},
           {"mode", mode},
           {"coordinates", coordinates},
           {"nearest", nearest}}};
}

TEST(SimdMove, ResizeNearestAndLinear) {
  const Tensor x = random_tensor({2, 3, 7, 9}, 1);
  for (const Shape& to : {Shape{2, 3, 14, 18}, Shape{2, 3, 5, 23}, Shape{2, 3, 7, 31}, Shape{2, 3, 20, 9},
                          Shape{2, 3, 1, 1}, Shape{2, 3, 7, 9}}) {
    for (const char* coordinates :
         {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"}) {
      for (const char* nearest : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
        expect_same_as_reference(resize(x, to, "nearest", coordinates, nearest));
      }
      expect_same_as_reference(resize(x, to, "linear", coordinates, "floor"));
    }
  }
}

TEST(SimdMove, ResizeOfOtherRanksAndSizes) {
  expect_same_as_reference(
      resize(random_tensor({1, 21, 33, 33}, 1), {1, 21, 65, 129}, "linear", "align_corners", "floor"));
  expect_same_as_reference(
      resize(random_tensor({1, 16, 40, 40}, 1), {1, 16, 80, 80}, "nearest", "asymmetric", "floor"));
  expect_same_as_reference(resize(random_tensor({9}, 1), {20}, "linear", "half_pixel", "floor"));
  expect_same_as_reference(resize(random_tensor({2, 3, 9}, 1), {2, 3, 20}, "linear", "half_pixel", "floor"));
  expect_same_as_reference(
      resize(random_tensor({2, 3, 4, 5, 6}, 1), {2, 6, 4, 10, 3}, "nearest", "half_pixel", "floor"));
  expect_same_as_reference(resize(random_ints({3, 4}, 1, 0, 9), {6, 7}, "nearest", "half_pixel", "floor"));
  expect_unsupported(resize(random_tensor({1, 1, 4, 4}, 1), {1, 1, 8, 8}, "cubic", "half_pixel", "floor"));
  expect_unsupported(
      resize(random_tensor({1, 2, 4, 4, 4}, 1), {1, 2, 8, 8, 8}, "linear", "half_pixel", "floor"));
}

TEST(SimdMove, ResizeWithARoundedScale) {
  NodeCase test = resize(random_tensor({1, 2, 7, 9}, 1), {1, 2, 10, 13}, "linear", "half_pixel", "floor");
  test.attrs.set("scales", std::vector<double>{1, 1, 1.5, 1.5});
  expect_same_as_reference(test);
}

}  // namespace
}  // namespace limber
