#include <gtest/gtest.h>

#include <limits>

#include "tests/backend/cpu/simd_test_util.h"

namespace limber {
namespace {

using Axes = std::vector<int64_t>;

constexpr OpKind kReductions[] = {OpKind::kReduceSum,      OpKind::kReduceMean,   OpKind::kReduceMax,
                                  OpKind::kReduceMin,      OpKind::kReduceProd,   OpKind::kReduceL1,
                                  OpKind::kReduceL2,       OpKind::kReduceLogSum, OpKind::kReduceLogSumExp,
                                  OpKind::kReduceSumSquare};

NodeCase reduction(OpKind op, Tensor x, Axes axes, bool keep = true) {
  return {op, {std::move(x)}, {{"axes", std::move(axes)}, {"keepdims", int64_t{keep}}}};
}

TEST(SimdReduce, AnySetOfAxes) {
  for (OpKind op : kReductions) {
    for (const Axes& axes :
         {Axes{0}, Axes{1}, Axes{2}, Axes{3}, Axes{0, 1}, Axes{2, 3}, Axes{0, 2}, Axes{1, 3}, Axes{0, 3},
          Axes{1, 2}, Axes{0, 1, 2}, Axes{0, 2, 3}, Axes{0, 1, 2, 3}, Axes{}}) {
      expect_same_as_reference(reduction(op, random_tensor({2, 3, 5, 19}, 1, 0.4, 1.5), axes));
      expect_same_as_reference(reduction(op, random_tensor({3, 1, 4, 2}, 1, 0.4, 1.5), axes, false));
    }
  }
}

TEST(SimdReduce, LargeTensorsOnThreads) {
  for (OpKind op : kReductions) {
    if (op == OpKind::kReduceProd) continue;
    const Tensor x = random_tensor({2, 48, 61, 33}, 3, 0.1, 1.0);
    for (const Axes& axes : {Axes{2, 3}, Axes{1}, Axes{0, 2, 3}, Axes{3}, Axes{0, 1, 2, 3}}) {
      expect_same_as_reference(reduction(op, x, axes));
    }
  }
}

TEST(SimdReduce, MixedSigns) {
  for (OpKind op : {OpKind::kReduceSum, OpKind::kReduceMean, OpKind::kReduceMax, OpKind::kReduceMin,
                    OpKind::kReduceL1, OpKind::kReduceLogSumExp}) {
    NodeCase test = reduction(op, random_tensor({7, 11, 37}, 1, -90, 90), {1});
    test.absolute = 1e-4;
    expect_same_as_reference(test);
    test.attrs.set("axes", Axes{2});
    expect_same_as_reference(test);
  }
}

TEST(SimdReduce, NothingToReduceGivesTheNeutralElement) {
  for (OpKind op : kReductions) {
    expect_same_as_reference(reduction(op, random_tensor({3, 0}, 1), {1}));
    expect_same_as_reference(reduction(op, random_tensor({0, 3}, 1), {0}));
    expect_same_as_reference(reduction(op, random_tensor({0, 3}, 1), {1}));
    expect_same_as_reference(reduction(op, random_tensor({2, 0, 3}, 1), {1}));
  }
}

TEST(SimdReduce, InfinityAndNaN) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from({1.0f, kInf, 2.0f, -kInf, -kInf, -kInf, nan, 1.0f, kInf}, {3, 3});
  for (OpKind op : {OpKind::kReduceMax, OpKind::kReduceMin, OpKind::kReduceLogSumExp}) {
    expect_same_as_reference(reduction(op, x, {1}));
    expect_same_as_reference(reduction(op, x, {0}));
  }
}

TEST(SimdReduce, GlobalPools) {
  for (const Shape& shape :
       {Shape{2, 5, 7, 7}, Shape{1, 33, 9}, Shape{1, 64, 56, 56}, Shape{2, 3, 4, 5, 6}}) {
    expect_same_as_reference({OpKind::kGlobalAveragePool, {random_tensor(shape, 1)}});
    expect_same_as_reference({OpKind::kGlobalMaxPool, {random_tensor(shape, 1)}});
  }
}

TEST(SimdReduce, ArgMaxAndArgMin) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (OpKind op : {OpKind::kArgMax, OpKind::kArgMin}) {
    for (int64_t last : {0, 1}) {
      const auto attrs = [&](int64_t axis) {
        return Attrs{{"axis", axis}, {"keepdims", int64_t{1}}, {"select_last", last}};
      };
      Tensor rounded = random_tensor({3, 7, 19}, 1, 0, 4);
      for (float& x : rounded.data<float>()) x = static_cast<float>(static_cast<int>(x));  // ties
      for (int64_t axis : {0, 1, 2}) expect_same_as_reference({op, {rounded}, attrs(axis)});
      expect_same_as_reference({op, {random_tensor({1, 21, 65, 63}, 1)}, attrs(1)});
      expect_same_as_reference({op, {Tensor::from({1.0f, nan, 3.0f, nan}, {4})}, attrs(0)});
    }
  }
}

}  // namespace
}  // namespace limber
