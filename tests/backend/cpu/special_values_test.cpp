// NaN, infinity, denormal numbers and signed zeros: where the reference lets them through, so does every own
// kernel, in whatever lane they come.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/backend/cpu/simd_test_util.h"

namespace limber {
namespace {

using Ints = std::vector<int64_t>;

constexpr float kInfinite = std::numeric_limits<float>::infinity();

// NaN is many numbers: the sign and 22 bits are free.
const float kNaNs[] = {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN(),
                       std::bit_cast<float>(0x7fc00001u), std::bit_cast<float>(0xffc001ffu),
                       std::bit_cast<float>(0x7fffffffu)};

Tensor with(Tensor tensor, int64_t at, float value) {
  Tensor copy = *tensor.copy();
  copy.data<float>()[static_cast<size_t>(at)] = value;
  return copy;
}

TEST(SpecialValues, ActivationsKeepEveryNaN) {
  for (OpKind op :
       {OpKind::kSigmoid, OpKind::kSilu, OpKind::kSoftplus, OpKind::kMish, OpKind::kExp, OpKind::kLog,
        OpKind::kTanh, OpKind::kErf, OpKind::kGelu, OpKind::kRelu, OpKind::kHardSwish, OpKind::kSqrt,
        OpKind::kAbs, OpKind::kNeg, OpKind::kSign, OpKind::kFloor, OpKind::kRound, OpKind::kSoftsign}) {
    for (float nan : kNaNs) {
      for (int64_t at : {0, 15, 18})
        expect_same_as_reference({op, {with(random_tensor({19}, 1, 0.1, 2), at, nan)}});
    }
  }
  for (float nan : kNaNs) {
    const Tensor x = with(random_tensor({19}, 1), 7, nan);
    expect_same_as_reference({OpKind::kElu, {x}, {{"alpha", 1.3}}});
    expect_same_as_reference({OpKind::kClip, {x}, {{"min", 0.0}, {"max", 6.0}}});
    expect_same_as_reference({OpKind::kHardSigmoid, {x}, {{"alpha", 0.2}, {"beta", 0.5}}});
  }
}

// One NaN makes its row NaN and no other.
TEST(SpecialValues, SoftmaxOfARowWithANaN) {
  for (OpKind op : {OpKind::kSoftmax, OpKind::kLogSoftmax}) {
    for (float nan : kNaNs) {
      for (int64_t at : {0, 8, 16, 20, 59}) {
        const Tensor x = with(random_tensor({3, 20}, 1), at, nan);
        for (int64_t axis : {0, 1}) expect_same_as_reference({op, {x}, {{"axis", axis}}});
      }
    }
  }
}

TEST(SpecialValues, SoftmaxOfInfinities) {
  for (OpKind op : {OpKind::kSoftmax, OpKind::kLogSoftmax}) {
    for (int64_t axis : {0, 1}) {
      const Attrs attrs = {{"axis", axis}};
      const Tensor x = random_tensor({3, 20}, 1);
      expect_same_as_reference({op, {with(x, 5, -kInfinite)}, attrs});  // is left out
      expect_same_as_reference({op, {with(x, 5, kInfinite)}, attrs});
      Tensor none = *Tensor::allocate(x.type());
      for (float& v : none.data<float>()) v = -kInfinite;
      expect_same_as_reference({op, {none}, attrs});
      expect_same_as_reference({op, {with(x, 0, 3e38f)}, attrs});  // far beyond what exp can take
    }
  }
}

TEST(SpecialValues, ReductionsSeeNaNInEveryLane) {
  for (OpKind op :
       {OpKind::kReduceSum, OpKind::kReduceMean, OpKind::kReduceMax, OpKind::kReduceMin, OpKind::kReduceProd,
        OpKind::kReduceL1, OpKind::kReduceL2, OpKind::kReduceLogSumExp, OpKind::kReduceSumSquare}) {
    for (int64_t at = 0; at < 70; at += 3) {
      const Tensor x = with(random_tensor({2, 35}, 1, 0.5, 1.5), at, kNaNs[static_cast<size_t>(at) % 5]);
      for (int64_t axis : {0, 1}) {
        expect_same_as_reference({op, {x}, {{"axes", Ints{axis}}, {"keepdims", int64_t{1}}}});
      }
    }
  }
}

TEST(SpecialValues, SumsOfInfinities) {
  for (OpKind op : {OpKind::kReduceSum, OpKind::kReduceMean, OpKind::kReduceL2, OpKind::kReduceLogSumExp}) {
    const Tensor x = with(with(random_tensor({4, 33}, 1), 3, kInfinite), 40, -kInfinite);
    for (const Ints& axes : {Ints{0}, Ints{1}, Ints{0, 1}}) {
      expect_same_as_reference({op, {x}, {{"axes", axes}, {"keepdims", int64_t{0}}}});
    }
  }
}

TEST(SpecialValues, ArithmeticWithThem) {
  const Tensor a = Tensor::from(
      {0.0f, -0.0f, kInfinite, -kInfinite, kNaNs[0], 1.0f, kInfinite, 1e-40f, 3e38f, -kInfinite, 0.0f}, {11});
  const Tensor b = Tensor::from(
      {0.0f, 1.0f, -kInfinite, 0.0f, 2.0f, kNaNs[2], kInfinite, 1e-5f, 3e38f, -0.0f, -0.0f}, {11});
  for (OpKind op : {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kDiv, OpKind::kMin, OpKind::kMax,
                    OpKind::kPow, OpKind::kEqual, OpKind::kLess, OpKind::kGreaterOrEqual}) {
    expect_same_as_reference({op, {a, b}});
    expect_same_as_reference({op, {b, a}});
  }
}

TEST(SpecialValues, CheapPowersAreThePowers) {
  const Tensor x = Tensor::from(
      {0.0f, -0.0f, kInfinite, -kInfinite, kNaNs[0], -2.0f, 1e-30f, 1e30f, -1e30f, 1e-40f}, {10});
  for (float p : {2.0f, 3.0f, -1.0f, 0.5f, 0.0f, 1.0f, -0.5f, -2.0f}) {
    expect_same_as_reference({.op = OpKind::kPow, .inputs = {x, Tensor::scalar(p)}, .constants = {1}});
  }
}

// No variance: epsilon alone keeps it from dividing by zero, and makes 300 times as much of what is left.
TEST(SpecialValues, NormalisationsOfEqualAndOfBrokenNumbers) {
  Tensor equal = *Tensor::allocate({DType::kF32, {2, 6, 5, 3}});
  for (float& x : equal.data<float>()) x = 7;
  const Tensor ones = random_tensor({6}, 2, 1, 2), broken = with(equal, 17, kNaNs[3]),
               far = with(equal, 17, kInfinite);
  for (const Tensor& x : {equal, broken, far}) {
    expect_same_as_reference({OpKind::kLayerNorm, {x}, {{"axis", int64_t{2}}, {"epsilon", 1e-5}}});
    const auto near = [&](OpKind op, const std::vector<Tensor>& inputs, const Attrs& attrs) {
      NodeCase test{op, inputs, attrs};
      test.absolute = 1e-3;  // they multiply before they subtract
      expect_same_as_reference(test);
    };
    near(OpKind::kInstanceNorm, {x, ones, ones}, {{"epsilon", 1e-5}});
    near(OpKind::kGroupNorm, {x, ones, ones}, {{"epsilon", 1e-5}, {"groups", int64_t{2}}});
    near(OpKind::kBatchNorm, {x, ones, ones, ones, ones}, {{"epsilon", 1e-5}});
  }
}

TEST(SpecialValues, AttentionWithoutAnyKeyLeft) {
  Tensor mask = *Tensor::zeros({DType::kF32, {3, 20}});
  for (size_t k = 20; k < 40; ++k) mask.data<float>()[k] = -kInfinite;  // the second query sees nothing
  const Tensor q = random_tensor({2, 3, 8}, 1), k = random_tensor({2, 20, 8}, 2),
               v = random_tensor({2, 20, 8}, 3);
  expect_same_as_reference({OpKind::kAttention, {q, k, v, mask}, {{"scale", 0.3}}});
  for (float nan : kNaNs) {
    expect_same_as_reference({OpKind::kAttention, {with(q, 9, nan), k, v}, {{"scale", 0.3}}});
    expect_same_as_reference({OpKind::kAttention, {q, k, with(v, 9, nan)}, {{"scale", 0.3}}});
  }
}

// A gradient that is not a number reaches the weights: a training that broke must not look healthy.
TEST(SpecialValues, UpdatesShowBrokenGradients) {
  const Tensor w = random_tensor({19}, 1), m = random_tensor({19}, 2), v = random_tensor({19}, 3, 0, 1),
               rate = Tensor::scalar(0.1f), step = Tensor::scalar(3.0f);
  for (float bad : {kNaNs[0], kNaNs[3], kInfinite, -kInfinite}) {
    const Tensor g = with(random_tensor({19}, 4), 18, bad);
    expect_same_as_reference({OpKind::kSgdUpdate, {w, g, rate, m}, {{"momentum", 0.9}, {"decay", 0.01}}, 2});
    NodeCase adam{OpKind::kAdamUpdate,
                  {w, g, rate, m, v, step},
                  {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}},
                  4};
    adam.relative = 1e-4;
    expect_same_as_reference(adam);
  }
}

TEST(SpecialValues, GradientsOfActivationsAtTheirKinks) {
  const Tensor x =
      Tensor::from({0.0f, -0.0f, 3.0f, -3.0f, 6.0f, 1.0f, -1.0f, kInfinite, -kInfinite, 2.5f, -2.5f}, {11});
  const Tensor dy = random_tensor({11}, 1);
  for (const char* act : {"relu", "leaky_relu", "clip", "hard_sigmoid", "hard_swish"}) {
    if (std::string(act) == "clip") {
      expect_same_as_reference(
          {OpKind::kActivationBackward,
           {dy, x},
           {{"act", act}, {"act_alpha", 0.0}, {"act_beta", 6.0}, {"from_output", int64_t{0}}}});
    } else {
      expect_same_as_reference(
          {OpKind::kActivationBackward,
           {dy, x},
           {{"act", act}, {"act_alpha", 0.2}, {"act_beta", 0.5}, {"from_output", int64_t{0}}}});
    }
  }
}

}  // namespace
}  // namespace limber
