// Normalisation and reductions.
#include <gtest/gtest.h>

#include <limits>

#include "tests/ops/type_case.h"

namespace limber::testing {
namespace {

const Attrs kEpsilon = {{"epsilon", 1e-5}};

TEST(NormTypes, Variants) {
  const Attrs training = {{"epsilon", 1e-5}, {"momentum", 0.9}};
  const Attrs layer = {{"axis", num(1)}, {"epsilon", 1e-5}};
  expect_types({
      {OpKind::kBatchNorm,
       {"f32[N,4,8,8]", "f32[4]", "f32[4]", "f32[4]", "f32[4]"},
       kEpsilon,
       {"f32[N,4,8,8]"}},
      {OpKind::kBatchNormTraining,
       {"f32[N,4]", "f32[4]", "f32[4]", "f32[4]", "f32[4]"},
       training,
       {"f32[N,4]", "f32[4]", "f32[4]"}},
      {OpKind::kLayerNorm, {"f32[N,4,5]"}, layer, {"f32[N,4,5]"}},
      {OpKind::kLayerNorm,
       {"f32[N,4,5]", "f32[4,5]", "f32[5]"},
       layer,
       {"f32[N,4,5]", "f32[N,1,1]", "f32[N,1,1]"}},
      {OpKind::kInstanceNorm, {"f32[N,4,8]", "f32[4]", "f32[4]"}, kEpsilon, {"f32[N,4,8]"}},
      {OpKind::kGroupNorm,
       {"f32[N,4,8]", "f32[4]", "f32[4]"},
       {{"groups", num(2)}, {"epsilon", 1e-5}},
       {"f32[N,4,8]"}},
      {OpKind::kLRN,
       {"f32[N,4,8,8]"},
       {{"size", num(3)}, {"alpha", 1e-4}, {"beta", 0.75}, {"bias", 1.0}},
       {"f32[N,4,8,8]"}},
      {OpKind::kLpNorm, {"f32[N,4]"}, {{"axis", num(1)}, {"p", num(2)}}, {"f32[N,4]"}},
  });
  expect_failures({
      {OpKind::kBatchNorm,
       {"f32[N,4]", "f32[4]", "f32[4]", "f32[4]", "f32[5]"},
       kEpsilon,
       "input 4 has type f32[5]"},
      {OpKind::kBatchNorm, {"f32[4]", "f32[4]", "f32[4]", "f32[4]", "f32[4]"}, kEpsilon, "expected rank 2"},
      {OpKind::kBatchNorm, {"f32[N,4]", "f32[4]", "f32[4]", "f32[4]"}, kEpsilon, "4 inputs, expected 5"},
      {OpKind::kBatchNorm,
       {"i32[N,4]", "i32[4]", "i32[4]", "i32[4]", "i32[4]"},
       kEpsilon,
       "expected a floating-point type"},
      {OpKind::kLayerNorm,
       {"f32[N,4,5]", "f32[4]"},
       layer,
       "scale has type f32[4], which does not broadcast to [4,5]"},
      {OpKind::kLayerNorm,
       {"f32[N,4,5]"},
       {{"axis", num(3)}, {"epsilon", 1e-5}},
       "'axis' is 3, expected an axis in [0, 3)"},
      {OpKind::kGroupNorm,
       {"f32[N,4,8]", "f32[4]", "f32[4]"},
       {{"groups", num(3)}, {"epsilon", 1e-5}},
       "do not divide into 3 groups"},
      {OpKind::kGroupNorm,
       {"f32[N,4,8]", "f32[4]", "f32[4]"},
       {{"groups", num(0)}, {"epsilon", 1e-5}},
       "'groups' is 0"},
      {OpKind::kLRN,
       {"f32[N,4,8,8]"},
       {{"size", num(0)}, {"alpha", 1e-4}, {"beta", 0.75}, {"bias", 1.0}},
       "'size' is 0"},
      {OpKind::kLpNorm, {"f32[N,4]"}, {{"axis", num(1)}, {"p", num(3)}}, "'p' is 3"},
      {OpKind::kInstanceNorm,
       {"f32[1,1,2]", "f32[1]", "f32[1]"},
       {{"epsilon", std::numeric_limits<double>::quiet_NaN()}},
       "expected a finite number"},
  });
}

Attrs reduce(Ints axes, bool keepdims) { return {{"axes", axes}, {"keepdims", num(keepdims)}}; }

TEST(ReduceTypes, Variants) {
  const Attrs axis1 = {{"axis", num(1)}};
  expect_types({
      {OpKind::kReduceMean, {"f32[N,4,8,8]"}, reduce({2, 3}, true), {"f32[N,4,1,1]"}},
      {OpKind::kReduceSum, {"i64[N,4,8,8]"}, reduce({2, 3}, false), {"i64[N,4]"}},
      {OpKind::kReduceMax, {"f32[N,4]"}, reduce({0, 1}, false), {"f32[]"}},
      {OpKind::kReduceSum, {"f32[N,4]"}, reduce({}, false), {"f32[N,4]"}},
      {OpKind::kReduceL2, {"f32[]"}, reduce({}, true), {"f32[]"}},
      {OpKind::kArgMax, {"f32[N,10]"}, {{"axis", num(1)}, {"keepdims", num(0)}}, {"i64[N]"}},
      {OpKind::kArgMin,
       {"u8[N,10]"},
       {{"axis", num(1)}, {"keepdims", num(1)}, {"select_last", num(1)}},
       {"i64[N,1]"}},
      {OpKind::kSoftmax, {"f32[N,10]"}, axis1, {"f32[N,10]"}},
      {OpKind::kHardmax, {"f32[N,10]"}, axis1, {"f32[N,10]"}},
      {OpKind::kTopK, {"f32[N,10]"}, {{"axis", num(1)}, {"k", num(5)}}, {"f32[N,5]", "i64[N,5]"}},
      {OpKind::kTopK,
       {"f32[N,10]"},
       {{"axis", num(0)}, {"k", num(0)}, {"largest", num(0)}},
       {"f32[0,10]", "i64[0,10]"}},
      {OpKind::kCumSum, {"i32[N,10]"}, {{"axis", num(0)}, {"reverse", num(1)}}, {"i32[N,10]"}},
  });
}

TEST(ReduceTypes, Hostile) {
  expect_failures({
      {OpKind::kReduceSum, {"f32[2,3]"}, reduce({2}, true), "'axes' holds 2"},
      {OpKind::kReduceSum, {"f32[2,3]"}, reduce({-1}, true), "'axes' holds -1"},
      {OpKind::kReduceSum, {"f32[2,3]"}, reduce({1, 1}, true), "sorted, different axes"},
      {OpKind::kReduceSum, {"f32[2,3]"}, reduce({1, 0}, true), "sorted, different axes"},
      {OpKind::kReduceSum, {"f32[2,3]"}, {{"axes", Ints{0}}, {"keepdims", num(2)}}, "'keepdims' is 2"},
      {OpKind::kReduceLogSum, {"i32[2,3]"}, reduce({0}, true), "expected a floating-point type"},
      {OpKind::kReduceMax, {"bool[2,3]"}, reduce({0}, true), "expected a numeric type"},
      {OpKind::kArgMax, {"f32[]"}, {{"axis", num(0)}, {"keepdims", num(0)}}, "expected an axis in [0, 0)"},
      {OpKind::kArgMax, {"f32[2,0]"}, {{"axis", num(1)}, {"keepdims", num(0)}}, "at least one element"},
      {OpKind::kSoftmax, {"f32[2,3]"}, {{"axis", num(-1)}}, "'axis' is -1"},
      {OpKind::kSoftmax, {"f32[2,3]"}, {{"axis", INT64_MIN}}, "expected an axis in [0, 2)"},
      {OpKind::kTopK, {"f32[2,3]"}, {{"axis", num(1)}, {"k", num(4)}}, "expected at most 3", 2},
      {OpKind::kTopK, {"f32[2,3]"}, {{"axis", num(1)}, {"k", num(-1)}}, "'k' is -1", 2},
      {OpKind::kTopK, {"f32[2,3]"}, {{"axis", num(1)}, {"k", num(1)}}, "1 outputs, expected 2"},
      {OpKind::kCumSum, {"f32[2,3]"}, {{"axis", num(2)}}, "'axis' is 2"},
  });
}

}  // namespace
}  // namespace limber::testing
