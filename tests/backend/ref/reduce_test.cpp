#include <cmath>

#include "tests/backend/ref/run_op.h"

namespace limber::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Attrs over(Ints axes, bool keepdims = false) { return {{"axes", axes}, {"keepdims", int64_t{keepdims}}}; }

TEST(RefReduce, ReducesAnySetOfAxes) {
  const Tensor x = counting({2, 3, 2});
  expect(run(OpKind::kReduceSum, {x}, over({1})), {DType::kF32, {2, 2}}, {6, 9, 24, 27});
  expect(run(OpKind::kReduceSum, {x}, over({0, 2}, true)), {DType::kF32, {1, 3, 1}}, {14, 22, 30});
  expect(run(OpKind::kReduceSum, {x}, over({0, 1, 2})), {DType::kF32, {}}, {66});
  expect(run(OpKind::kReduceSum, {f32({2}, {1, 2})}, over({}, true)), {DType::kF32, {2}}, {1, 2});
}

TEST(RefReduce, KnowsEveryReduction) {
  const Tensor x = f32({2, 2}, {1, -2, 3, 4});
  const TensorType t{DType::kF32, {2}};
  expect(run(OpKind::kReduceMean, {x}, over({1})), t, {-0.5, 3.5});
  expect(run(OpKind::kReduceMax, {x}, over({1})), t, {1, 4});
  expect(run(OpKind::kReduceMin, {x}, over({1})), t, {-2, 3});
  expect(run(OpKind::kReduceProd, {x}, over({1})), t, {-2, 12});
  expect(run(OpKind::kReduceL1, {x}, over({1})), t, {3, 7});
  expect(run(OpKind::kReduceL2, {x}, over({1})), t, {std::sqrt(5.0), 5});
  expect(run(OpKind::kReduceSumSquare, {x}, over({1})), t, {5, 25});
  expect(run(OpKind::kReduceLogSum, {x}, over({1})), t, {kNaN, std::log(7.0)});
  expect(run(OpKind::kReduceLogSumExp, {x}, over({1})), t,
         {std::log(std::exp(1) + std::exp(-2)), std::log(std::exp(3) + std::exp(4))});
}

TEST(RefReduce, LogSumExpDoesNotOverflow) {
  expect(run(OpKind::kReduceLogSumExp, {f32({2}, {1000, 1000})}, over({0})), {DType::kF32, {}},
         {1000 + std::log(2.0)});
  expect(run(OpKind::kReduceLogSumExp, {f32({2}, {-kInf, -kInf})}, over({0})), {DType::kF32, {}}, {-kInf});
}

TEST(RefReduce, HandlesIntegers) {
  const Tensor x = tensor<int32_t>({4}, {7, -2, 3, -5});
  const TensorType t{DType::kI32, {}};
  expect(run(OpKind::kReduceSum, {x}, over({0})), t, {3});
  expect(run(OpKind::kReduceMean, {x}, over({0})), t, {0});
  expect(run(OpKind::kReduceMax, {x}, over({0})), t, {7});
  expect(run(OpKind::kReduceMin, {x}, over({0})), t, {-5});
  expect(run(OpKind::kReduceProd, {x}, over({0})), t, {210});
  expect(run(OpKind::kReduceL1, {x}, over({0})), t, {17});
  expect(run(OpKind::kReduceL2, {x}, over({0})), t, {9});
  expect(run(OpKind::kReduceSumSquare, {x}, over({0})), t, {87});
}

TEST(RefReduce, HasAValueForNothing) {
  const Tensor x = f32({2, 0}, {});
  expect(run(OpKind::kReduceSum, {x}, over({1})), {DType::kF32, {2}}, {0, 0});
  expect(run(OpKind::kReduceProd, {x}, over({1})), {DType::kF32, {2}}, {1, 1});
  expect(run(OpKind::kReduceMax, {x}, over({1})), {DType::kF32, {2}}, {-kInf, -kInf});
  expect(run(OpKind::kReduceMin, {tensor<int8_t>({0}, {})}, over({0})), {DType::kI8, {}}, {127});
}

TEST(RefReduce, SumsInDouble) {
  // In float the ones would be lost beside 2^24.
  const Tensor x = f32({5}, {16777216, 1, 1, 1, 1});
  expect(run(OpKind::kReduceSum, {x}, over({0})), {DType::kF32, {}}, {16777220}, 0);
}

TEST(RefArg, PicksFirstOrLast) {
  const Tensor x = f32({2, 3}, {2, 2, 1, 0, 5, 5});
  const auto attrs = [](int64_t axis, int64_t keepdims, int64_t last) {
    return Attrs{{"axis", axis}, {"keepdims", keepdims}, {"select_last", last}};
  };
  expect(run(OpKind::kArgMax, {x}, attrs(1, 1, 0)), {DType::kI64, {2, 1}}, {0, 1});
  expect(run(OpKind::kArgMax, {x}, attrs(1, 0, 1)), {DType::kI64, {2}}, {1, 2});
  expect(run(OpKind::kArgMax, {x}, attrs(0, 0, 0)), {DType::kI64, {3}}, {0, 1, 1});
  expect(run(OpKind::kArgMin, {x}, attrs(1, 0, 0)), {DType::kI64, {2}}, {2, 0});
  expect(run(OpKind::kArgMin, {tensor<uint8_t>({3}, {9, 1, 1})}, attrs(0, 0, 1)), {DType::kI64, {}}, {2});
}

TEST(RefSoftmax, IsStable) {
  const Attrs axis1 = {{"axis", int64_t{1}}};
  const Tensor x = f32({2, 2}, {1000, 1000, 0, static_cast<float>(std::log(3.0))});
  expect(run(OpKind::kSoftmax, {x}, axis1), {DType::kF32, {2, 2}}, {0.5, 0.5, 0.25, 0.75});
  expect(run(OpKind::kLogSoftmax, {x}, axis1), {DType::kF32, {2, 2}},
         {-std::log(2.0), -std::log(2.0), std::log(0.25), std::log(0.75)});
  expect(run(OpKind::kSoftmax, {x}, {{"axis", int64_t{0}}}), {DType::kF32, {2, 2}}, {1, 1, 0, 0});
}

TEST(RefSoftmax, HardmaxMarksTheFirst) {
  expect(run(OpKind::kHardmax, {f32({2, 3}, {1, 3, 3, 2, 1, 0})}, {{"axis", int64_t{1}}}),
         {DType::kF32, {2, 3}}, {0, 1, 0, 1, 0, 0});
}

Attrs topk_attrs(int64_t axis, int64_t k, int64_t largest = 1) {
  return {{"axis", axis}, {"k", k}, {"largest", largest}};
}

TEST(RefTopK, SortsWithLowerIndexFirst) {
  const Tensor x = f32({5}, {3, 7, 7, 1, 3});
  const auto y = run_all(OpKind::kTopK, {x}, topk_attrs(0, 4), 2);
  expect(y[0], {DType::kF32, {4}}, {7, 7, 3, 3});
  expect(y[1], {DType::kI64, {4}}, {1, 2, 0, 4});
  const auto small = run_all(OpKind::kTopK, {x}, topk_attrs(0, 3, 0), 2);
  expect(small[0], {DType::kF32, {3}}, {1, 3, 3});
  expect(small[1], {DType::kI64, {3}}, {3, 0, 4});
}

TEST(RefTopK, WorksAlongAnyAxis) {
  const Tensor x = f32({2, 3, 2}, {0, 11, 2, 9, 1, 10, 5, 5, 4, 6, 6, 4});
  const auto y = run_all(OpKind::kTopK, {x}, topk_attrs(1, 2), 2);
  expect(y[0], {DType::kF32, {2, 2, 2}}, {2, 11, 1, 10, 6, 6, 5, 5});
  expect(y[1], {DType::kI64, {2, 2, 2}}, {1, 0, 2, 2, 2, 1, 0, 0});
}

TEST(RefTopK, OrdersNaNAndIntegers) {
  const auto nan = run_all(OpKind::kTopK, {f32({4}, {1, kNaN, 3, kNaN})}, topk_attrs(0, 4), 2);
  expect(nan[1], {DType::kI64, {4}}, {1, 3, 2, 0});
  const auto big = run_all(OpKind::kTopK, {i64({2}, {(1LL << 53), (1LL << 53) + 1})}, topk_attrs(0, 1), 2);
  EXPECT_EQ(big[0].data<int64_t>()[0], (1LL << 53) + 1);
  const auto none = run_all(OpKind::kTopK, {f32({2}, {1, 2})}, topk_attrs(0, 0), 2);
  expect(none[0], {DType::kF32, {0}}, {});
}

TEST(RefCumSum, GoesBothWays) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto attrs = [](int64_t axis, int64_t exclusive, int64_t reverse) {
    return Attrs{{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}};
  };
  const TensorType t{DType::kF32, {2, 3}};
  expect(run(OpKind::kCumSum, {x}, attrs(1, 0, 0)), t, {1, 3, 6, 4, 9, 15});
  expect(run(OpKind::kCumSum, {x}, attrs(1, 1, 0)), t, {0, 1, 3, 0, 4, 9});
  expect(run(OpKind::kCumSum, {x}, attrs(1, 0, 1)), t, {6, 5, 3, 15, 11, 6});
  expect(run(OpKind::kCumSum, {x}, attrs(1, 1, 1)), t, {5, 3, 0, 11, 6, 0});
  expect(run(OpKind::kCumSum, {x}, attrs(0, 0, 0)), t, {1, 2, 3, 5, 7, 9});
  expect(run(OpKind::kCumSum, {i64({2}, {1, 2})}, attrs(0, 0, 0)), {DType::kI64, {2}}, {1, 3});
}

}  // namespace
}  // namespace limber::test
