#include <gtest/gtest.h>

#include <limits>

#include "tests/backend/cpu/simd_test_util.h"

namespace limber {
namespace {

struct ShapePair {
  Shape a, b;
};

const std::vector<ShapePair>& shape_pairs() {
  static const std::vector<ShapePair> pairs = {
      {{}, {}},
      {{7}, {7}},
      {{3, 50}, {}},
      {{}, {3, 50}},
      {{2, 5, 7, 9}, {2, 5, 7, 9}},
      {{2, 5, 7, 9}, {1, 5, 1, 1}},
      {{2, 5, 7, 9}, {2, 5, 1, 1}},
      {{2, 5, 1, 1}, {2, 5, 7, 9}},
      {{2, 5, 7, 9}, {9}},
      {{2, 5, 7, 9}, {7, 1}},
      {{2, 1, 7, 1}, {1, 5, 1, 9}},
      {{4, 1}, {1, 33}},
      {{3, 1, 5, 1, 4}, {2, 1, 3, 1}},
      {{2, 64, 31, 33}, {1, 64, 1, 1}},
      {{5, 41, 192}, {192}},
      {{0, 3}, {1, 3}},
      {{2, 0, 3}, {3}},
  };
  return pairs;
}

TEST(SimdBinary, ArithmeticBroadcasts) {
  for (OpKind op : {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kDiv, OpKind::kMin, OpKind::kMax}) {
    for (const ShapePair& s : shape_pairs()) {
      expect_same_as_reference({op, {random_tensor(s.a, 1), random_tensor(s.b, 2, 0.5, 3.0)}});
      expect_same_as_reference({op, {random_tensor(s.b, 1), random_tensor(s.a, 2, 0.5, 3.0)}});
    }
  }
}

TEST(SimdBinary, PReluTakesSlopesPerChannel) {
  expect_same_as_reference({OpKind::kPRelu, {random_tensor({2, 5, 7, 9}, 1), random_tensor({5, 1, 1}, 2)}});
  expect_same_as_reference({OpKind::kPRelu, {random_tensor({2, 5, 7, 9}, 1), random_tensor({1}, 2)}});
  expect_same_as_reference({OpKind::kPRelu, {random_tensor({2, 17}, 1), random_tensor({2, 17}, 2)}});
}

TEST(SimdBinary, NaNWinsInMinAndMax) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor a = Tensor::from({nan, 1.0f, nan, 2.0f}, {4}), b = Tensor::from({1.0f, nan, nan, 3.0f}, {4});
  expect_same_as_reference({OpKind::kMin, {a, b}});
  expect_same_as_reference({OpKind::kMax, {a, b}});
}

TEST(SimdBinary, Power) {
  const Tensor x = random_tensor({3, 4, 33}, 1, 0.1, 4.0);
  expect_same_as_reference({OpKind::kPow, {x, random_tensor({33}, 2)}});
  for (float p : {2.0f, 3.0f, -1.0f, 0.5f, 1.7f}) {
    const Tensor exponent = Tensor::scalar(p);
    expect_same_as_reference({OpKind::kPow, {x, exponent}});
    expect_same_as_reference({.op = OpKind::kPow, .inputs = {x, exponent}, .constants = {1}});
  }
  expect_same_as_reference({.op = OpKind::kPow,
                            .inputs = {random_tensor({100}, 3), Tensor::scalar<int64_t>(2)},
                            .constants = {1}});
}

TEST(SimdBinary, IntegersWrapAndDivideTowardsZero) {
  const Tensor a = Tensor::from<int64_t>({7, -7, INT64_MAX, INT64_MIN, 5, 0}, {6});
  const Tensor b = Tensor::from<int64_t>({2, 2, 2, -1, 0, -3}, {6});
  const Tensor c = Tensor::from<int32_t>({7, -7, INT32_MAX, INT32_MIN, 5, 0}, {6});
  const Tensor d = Tensor::from<int32_t>({2, 2, 2, -1, 0, -3}, {6});
  for (OpKind op : {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kDiv, OpKind::kMin, OpKind::kMax}) {
    expect_same_as_reference({op, {a, b}});
    expect_same_as_reference({op, {c, d}});
    expect_same_as_reference({op, {random_ints({3, 4}, 1, -9, 9), random_ints({4}, 2, -9, 9)}});
  }
}

TEST(SimdBinary, ComparisonsAndLogic) {
  for (OpKind op :
       {OpKind::kEqual, OpKind::kLess, OpKind::kLessOrEqual, OpKind::kGreater, OpKind::kGreaterOrEqual}) {
    expect_same_as_reference({op, {random_ints({3, 1, 5}, 1, 0, 3), random_ints({4, 1}, 2, 0, 3)}});
    expect_same_as_reference({op, {random_tensor({150, 133}, 1), random_tensor({133}, 2)}});
  }
  const Tensor a = Tensor::from({true, true, false, false}, {4}),
               b = Tensor::from({true, false, true, false}, {4});
  for (OpKind op : {OpKind::kAnd, OpKind::kOr, OpKind::kXor, OpKind::kEqual})
    expect_same_as_reference({op, {a, b}});
}

TEST(SimdBinary, WhereBroadcastsAllThree) {
  const Tensor condition = Tensor::from({true, false, true}, {3, 1});
  expect_same_as_reference({OpKind::kWhere, {condition, random_tensor({2, 3, 5}, 1), random_tensor({5}, 2)}});
  expect_same_as_reference({OpKind::kWhere, {condition, Tensor::scalar(1.0f), random_tensor({3, 9000}, 2)}});
  expect_same_as_reference(
      {OpKind::kWhere, {condition, random_ints({3, 4}, 1, 0, 9), random_ints({4}, 2, 0, 9)}});
}

TEST(SimdBinary, MayBeWrittenOverTheOperandThatIsWhole) {
  for (OpKind op : {OpKind::kAdd, OpKind::kSub, OpKind::kDiv, OpKind::kMax}) {
    const Tensor whole = random_tensor({2, 64, 31, 9}, 1, 0.5, 3.0);
    expect_same_in_place({op, {whole, whole}});
    expect_same_in_place({op, {whole, random_tensor({1, 64, 1, 1}, 2, 0.5, 3.0)}});
    expect_same_in_place({op, {random_tensor({9}, 2), whole}});
  }
  expect_same_in_place({OpKind::kMul, {random_ints({3, 50}, 1, -9, 9), random_ints({50}, 2, -9, 9)}});
}

TEST(SimdBinary, OtherTypesAreLeftToOthers) {
  const Tensor x = Tensor::from({1.0, 2.0}, {2});
  expect_unsupported({OpKind::kAdd, {x, x}});
  expect_unsupported({OpKind::kMod, {random_tensor({3}, 1), random_tensor({3}, 2)}});
}

}  // namespace
}  // namespace limber
