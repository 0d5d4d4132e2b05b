#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/backend/cpu/simd_test_util.h"

namespace limber {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::numeric_limits<float>::quiet_NaN();

struct UnaryCase {
  OpKind op;
  double low, high;
  Attrs attrs = {};
};

const std::vector<UnaryCase>& unary_cases() {
  static const std::vector<UnaryCase> cases = {
      {OpKind::kAbs, -3, 3},
      {OpKind::kNeg, -3, 3},
      {OpKind::kSign, -1, 1},
      {OpKind::kReciprocal, 0.1, 4},
      {OpKind::kFloor, -9, 9},
      {OpKind::kCeil, -9, 9},
      {OpKind::kRound, -9, 9},
      {OpKind::kSqrt, 0, 9},
      {OpKind::kExp, -100, 85},
      {OpKind::kLog, 1e-6, 50},
      {OpKind::kErf, -5, 5},
      {OpKind::kSin, -7, 7},
      {OpKind::kCos, -7, 7},
      {OpKind::kTan, -1.2, 1.2},
      {OpKind::kAsin, -1, 1},
      {OpKind::kAcos, -1, 1},
      {OpKind::kAtan, -9, 9},
      {OpKind::kSinh, -5, 5},
      {OpKind::kCosh, -5, 5},
      {OpKind::kTanh, -12, 12},
      {OpKind::kAsinh, -5, 5},
      {OpKind::kAcosh, 1, 9},
      {OpKind::kAtanh, -0.99, 0.99},
      {OpKind::kRelu, -3, 3},
      {OpKind::kSigmoid, -100, 100},
      {OpKind::kSilu, -40, 40},
      {OpKind::kHardSwish, -5, 5},
      {OpKind::kMish, -40, 40},
      {OpKind::kSoftplus, -40, 40},
      {OpKind::kSoftsign, -9, 9},
      {OpKind::kGelu, -6, 6},
      {OpKind::kGelu, -6, 6, {{"approximate", "tanh"}}},
      {OpKind::kLeakyRelu, -3, 3, {{"alpha", 0.1}}},
      {OpKind::kElu, -20, 3, {{"alpha", 1.3}}},
      {OpKind::kCelu, -20, 3, {{"alpha", 0.7}}},
      {OpKind::kSelu, -20, 3, {{"alpha", 1.67326}, {"gamma", 1.0507}}},
      {OpKind::kThresholdedRelu, -3, 3, {{"alpha", 0.5}}},
      {OpKind::kHardSigmoid, -5, 5, {{"alpha", 0.2}, {"beta", 0.5}}},
      {OpKind::kShrink, -3, 3, {{"lambd", 0.5}, {"bias", 0.25}}},
      {OpKind::kClip, -9, 9, {{"min", 0.0}, {"max", 6.0}}},
      {OpKind::kClip, -9, 9, {{"min", -1.0}}},
  };
  return cases;
}

TEST(SimdUnary, MatchesReferenceForOddSizes) {
  for (const UnaryCase& c : unary_cases()) {
    for (int64_t n : {0, 1, 3, 15, 16, 17, 33, 70, 1003}) {
      expect_same_as_reference(
          {c.op, {random_tensor({n}, 7 + static_cast<uint64_t>(n), c.low, c.high)}, c.attrs});
    }
  }
}

TEST(SimdUnary, MatchesReferenceWhenSplitOverThreads) {
  for (const UnaryCase& c : unary_cases()) {
    expect_same_as_reference({c.op, {random_tensor({2, 3, 67, 101}, 5, c.low, c.high)}, c.attrs});
  }
}

TEST(SimdUnary, SmallResultsKeepTheirRelativeAccuracy) {
  for (OpKind op : {OpKind::kTanh, OpKind::kErf, OpKind::kSilu, OpKind::kSoftsign}) {
    expect_same_as_reference({.op = op, .inputs = {random_tensor({999}, 1, -1e-3, 1e-3)}, .absolute = 0});
  }
  expect_same_as_reference({.op = OpKind::kElu,
                            .inputs = {random_tensor({999}, 1, -1e-3, 1e-3)},
                            .attrs = {{"alpha", 1.0}},
                            .absolute = 0});
  expect_same_as_reference(
      {.op = OpKind::kSigmoid, .inputs = {random_tensor({999}, 1, -80, -20)}, .absolute = 0});
  expect_same_as_reference(
      {.op = OpKind::kSoftplus, .inputs = {random_tensor({999}, 1, -80, -20)}, .absolute = 0});
  expect_same_as_reference(
      {.op = OpKind::kMish, .inputs = {random_tensor({999}, 1, -80, -20)}, .absolute = 0});
  expect_same_as_reference(
      {.op = OpKind::kExp, .inputs = {random_tensor({999}, 1, -87, -20)}, .absolute = 0});
  expect_same_as_reference(
      {.op = OpKind::kLog, .inputs = {random_tensor({999}, 1, 1e-38, 1e-30)}, .absolute = 0});
  expect_same_as_reference(
      {.op = OpKind::kLog, .inputs = {random_tensor({999}, 1, 0.99, 1.01)}, .absolute = 0});
}

TEST(SimdUnary, SpecialValuesGoThrough) {
  const Tensor x = Tensor::from({0.0f, -0.0f, kInf, -kInf, kNaN, 1e-40f, -1e-40f, 3e38f, -3e38f, 0.5f, -0.5f,
                                 1.5f, 2.5f, -2.5f, 88.0f, 89.0f, -103.0f, 1e-45f},
                                {18});
  for (const UnaryCase& c : unary_cases()) {
    if (c.op == OpKind::kHardSwish || c.op == OpKind::kSilu || c.op == OpKind::kMish ||
        c.op == OpKind::kSoftsign || c.op == OpKind::kGelu) {
      continue;  // infinity times zero
    }
    expect_same_as_reference({c.op, {x}, c.attrs});
  }
}

TEST(SimdUnary, TestsAndLogic) {
  const Tensor x = Tensor::from({0.0f, kInf, -kInf, kNaN, 1.0f}, {5});
  expect_same_as_reference({OpKind::kIsNaN, {x}});
  expect_same_as_reference({OpKind::kIsInf, {x}});
  expect_same_as_reference({OpKind::kIsInf, {x}, {{"detect_negative", int64_t{0}}}});
  expect_same_as_reference({OpKind::kIsInf, {x}, {{"detect_positive", int64_t{0}}}});
  expect_same_as_reference({OpKind::kNot, {Tensor::from({true, false, true}, {3})}});
}

TEST(SimdUnary, CastAgreesForAllCommonPairs) {
  const Tensor x = Tensor::from({0.0f, -1.7f, 300.4f, 1e20f, -1e20f, kNaN, kInf, 0.3f, 127.9f}, {9});
  const Tensor i = Tensor::from<int64_t>({0, -1, 255, 256, -129, int64_t{1} << 40, 65504, 3}, {8});
  const Tensor b = Tensor::from({true, false}, {2});
  for (const char* to : {"f32", "f64", "f16", "bf16", "i8", "u8", "i32", "i64", "bool"}) {
    const Attrs attrs = {{"to", to}};
    expect_same_as_reference({OpKind::kCast, {x}, attrs});
    expect_same_as_reference({OpKind::kCast, {i}, attrs});
    expect_same_as_reference({OpKind::kCast, {b}, attrs});
  }
  expect_same_as_reference({OpKind::kCast, {random_tensor({3, 12345}, 2, -100, 100)}, {{"to", "i32"}}});
}

TEST(SimdUnary, MayBeWrittenOverTheInput) {
  for (const UnaryCase& c : unary_cases()) {
    expect_same_in_place({c.op, {random_tensor({3, 12345}, 5, c.low, c.high)}, c.attrs});
  }
}

}  // namespace
}  // namespace limber
