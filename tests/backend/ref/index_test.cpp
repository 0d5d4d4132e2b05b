#include "tests/backend/ref/run_op.h"

namespace limber::test {
namespace {

Attrs axis(int64_t i) { return {{"axis", i}}; }

TEST(RefGather, TakesSlices) {
  const Tensor x = counting({3, 2});
  expect(run(OpKind::kGather, {x, i64({2}, {2, 0})}, axis(0)), {DType::kF32, {2, 2}}, {4, 5, 0, 1});
  expect(run(OpKind::kGather, {x, i64({}, {1})}, axis(1)), {DType::kF32, {3}}, {1, 3, 5});
  expect(run(OpKind::kGather, {x, i64({2, 2}, {0, 1, 1, 0})}, axis(1)), {DType::kF32, {3, 2, 2}},
         {0, 1, 1, 0, 2, 3, 3, 2, 4, 5, 5, 4});
  expect(run(OpKind::kGather, {x, tensor<int32_t>({1}, {-1})}, axis(0)), {DType::kF32, {1, 2}}, {4, 5});
}

TEST(RefGather, ClampsWhatIsOutside) {
  const Tensor x = counting({3});
  expect(run(OpKind::kGather, {x, i64({4}, {3, INT64_MAX, -4, INT64_MIN})}, axis(0)), {DType::kF32, {4}},
         {2, 2, 0, 0});
  expect(run(OpKind::kGather, {f32({0, 2}, {}), i64({1}, {0})}, axis(0)), {DType::kF32, {1, 2}}, {0, 0});
}

TEST(RefGatherElements, FollowsOneAxis) {
  const Tensor x = counting({2, 3}, 1);
  expect(run(OpKind::kGatherElements, {x, i64({2, 2}, {2, 0, -1, 1})}, axis(1)), {DType::kF32, {2, 2}},
         {3, 1, 6, 5});
  expect(run(OpKind::kGatherElements, {x, i64({1, 3}, {1, 0, 1})}, axis(0)), {DType::kF32, {1, 3}},
         {4, 2, 6});
  expect(run(OpKind::kGatherElements, {x, i64({1, 2}, {9, -9})}, axis(0)), {DType::kF32, {1, 2}}, {4, 2});
}

TEST(RefGatherND, TakesElementsAndSlices) {
  const Tensor x = counting({2, 2, 2});
  expect(run(OpKind::kGatherND, {x, i64({2, 3}, {0, 1, 0, 1, 0, 1})}), {DType::kF32, {2}}, {2, 5});
  expect(run(OpKind::kGatherND, {x, i64({2, 1}, {1, 0})}), {DType::kF32, {2, 2, 2}},
         {4, 5, 6, 7, 0, 1, 2, 3});
  expect(run(OpKind::kGatherND, {x, i64({1, 1, 2}, {-1, -2})}), {DType::kF32, {1, 1, 2}}, {4, 5});
  expect(run(OpKind::kGatherND, {x, i64({1, 2}, {5, -7})}), {DType::kF32, {1, 2}}, {4, 5});
}

TEST(RefGatherND, SkipsBatchAxes) {
  const Attrs batched = {{"batch_dims", int64_t{1}}};
  expect(run(OpKind::kGatherND, {counting({2, 2, 2}), i64({2, 1}, {1, 0})}, batched), {DType::kF32, {2, 2}},
         {2, 3, 4, 5});
  expect(run(OpKind::kGatherND, {counting({2, 3}), i64({2, 2, 1}, {0, 2, 1, 1})}, batched),
         {DType::kF32, {2, 2}}, {0, 2, 4, 4});
}

TEST(RefScatterElements, WritesAndReduces) {
  const Tensor x = f32({1, 5}, {1, 2, 3, 4, 5}), at = i64({1, 3}, {1, -2, 1}), u = f32({1, 3}, {10, 20, 30});
  const auto attrs = [](const char* reduction) {
    return Attrs{{"axis", int64_t{1}}, {"reduction", reduction}};
  };
  const TensorType t{DType::kF32, {1, 5}};
  expect(run(OpKind::kScatterElements, {x, at, u}, attrs("none")), t, {1, 30, 3, 20, 5});
  expect(run(OpKind::kScatterElements, {x, at, u}, attrs("add")), t, {1, 42, 3, 24, 5});
  expect(run(OpKind::kScatterElements, {x, at, u}, attrs("mul")), t, {1, 600, 3, 80, 5});
  expect(run(OpKind::kScatterElements, {x, at, u}, attrs("max")), t, {1, 30, 3, 20, 5});
  expect(run(OpKind::kScatterElements, {x, at, u}, attrs("min")), t, {1, 2, 3, 4, 5});
}

TEST(RefScatterElements, FollowsTheFirstAxis) {
  const Tensor x = f32({3, 2}, {0, 0, 0, 0, 0, 0}), at = i64({2, 2}, {1, 0, 2, 99}),
               u = f32({2, 2}, {1, 2, 3, 4});
  expect(run(OpKind::kScatterElements, {x, at, u}, axis(0)), {DType::kF32, {3, 2}}, {0, 2, 1, 0, 3, 4});
}

TEST(RefScatterND, WritesSlices) {
  const Tensor x = f32({3, 2}, {1, 1, 1, 1, 1, 1}), at = i64({2, 1}, {2, 0}), u = f32({2, 2}, {2, 3, 4, 5});
  expect(run(OpKind::kScatterND, {x, at, u}), {DType::kF32, {3, 2}}, {4, 5, 1, 1, 2, 3});
  expect(run(OpKind::kScatterND, {x, at, u}, {{"reduction", "add"}}), {DType::kF32, {3, 2}},
         {5, 6, 1, 1, 3, 4});
  const Tensor n = i64({4}, {1, 2, 3, 4}), same = i64({2, 1}, {1, -3});
  expect(run(OpKind::kScatterND, {n, same, i64({2}, {5, 7})}, {{"reduction", "mul"}}), {DType::kI64, {4}},
         {1, 70, 3, 4});
  expect(run(OpKind::kScatterND, {n, same, i64({2}, {5, 1})}, {{"reduction", "max"}}), {DType::kI64, {4}},
         {1, 5, 3, 4});
}

TEST(RefOneHot, SwitchesOn) {
  const Tensor values = f32({2}, {-1, 1});
  expect(run(OpKind::kOneHot, {i64({2}, {0, -1}), values}, {{"axis", int64_t{1}}, {"depth", int64_t{3}}}),
         {DType::kF32, {2, 3}}, {1, -1, -1, -1, -1, 1});
  expect(run(OpKind::kOneHot, {f32({2}, {1, 5}), values}, {{"axis", int64_t{0}}, {"depth", int64_t{2}}}),
         {DType::kF32, {2, 2}}, {-1, -1, 1, -1});
}

TEST(RefReverseSequence, TurnsTheStartAround) {
  const Tensor x = counting({2, 4});
  expect(run(OpKind::kReverseSequence, {x, i64({2}, {3, 1})},
             {{"batch_axis", int64_t{0}}, {"time_axis", int64_t{1}}}),
         {DType::kF32, {2, 4}}, {2, 1, 0, 3, 4, 5, 6, 7});
  expect(run(OpKind::kReverseSequence, {counting({3, 2}), i64({2}, {2, 99})},
             {{"batch_axis", int64_t{1}}, {"time_axis", int64_t{0}}}),
         {DType::kF32, {3, 2}}, {2, 5, 0, 3, 4, 1});
}

}  // namespace
}  // namespace limber::test
