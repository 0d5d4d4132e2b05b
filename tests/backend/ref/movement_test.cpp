#include "tests/backend/ref/run_op.h"

namespace limber::test {
namespace {

TEST(RefMovement, CopiesWholeTensors) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  expect(run(OpKind::kIdentity, {x}), {DType::kF32, {2, 2}}, {1, 2, 3, 4});
  expect(run(OpKind::kReshape, {x}, {{"shape", Shape{4}}}), {DType::kF32, {4}}, {1, 2, 3, 4});
  expect(run(OpKind::kShapeOf, {counting({3, 0, 2})}), {DType::kI64, {3}}, {3, 0, 2});
}

TEST(RefMovement, MovesEveryType) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    const Tensor x = as(f32({2, 2}, {0, 1, 1, 0}), t);
    expect(run(OpKind::kTranspose, {x}, {{"perm", Ints{1, 0}}}), {t, {2, 2}}, {0, 1, 1, 0});
    expect(run(OpKind::kConcat, {x, x}, {{"axis", int64_t{1}}}), {t, {2, 4}}, {0, 1, 0, 1, 1, 0, 1, 0});
    expect(run(OpKind::kGather, {x, i64({1}, {1})}, {{"axis", int64_t{0}}}), {t, {1, 2}}, {1, 0});
    expect(run(OpKind::kExpand, {x}, {{"shape", Shape{2, 2, 2}}}), {t, {2, 2, 2}}, {0, 1, 1, 0, 0, 1, 1, 0});
  }
}

TEST(RefTranspose, PermutesAxes) {
  expect(run(OpKind::kTranspose, {counting({2, 3, 2})}, {{"perm", Ints{2, 0, 1}}}), {DType::kF32, {2, 2, 3}},
         {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11});
  expect(run(OpKind::kTranspose, {counting({2, 3})}, {{"perm", Ints{1, 0}}}), {DType::kF32, {3, 2}},
         {0, 3, 1, 4, 2, 5});
}

TEST(RefExpand, RepeatsAxesOfSizeOne) {
  expect(run(OpKind::kExpand, {f32({2, 1}, {1, 2})}, {{"shape", Shape{2, 2, 2}}}), {DType::kF32, {2, 2, 2}},
         {1, 1, 2, 2, 1, 1, 2, 2});
  expect(run(OpKind::kExpand, {f32({}, {3})}, {{"shape", Shape{2}}}), {DType::kF32, {2}}, {3, 3});
}

TEST(RefTile, RepeatsTheWhole) {
  expect(run(OpKind::kTile, {f32({1, 2}, {1, 2})}, {{"repeats", Ints{2, 2}}}), {DType::kF32, {2, 4}},
         {1, 2, 1, 2, 1, 2, 1, 2});
  expect(run(OpKind::kTile, {f32({2}, {1, 2})}, {{"repeats", Ints{0}}}), {DType::kF32, {0}}, {});
}

TEST(RefConcat, JoinsPartsOfDifferentSize) {
  const Tensor a = counting({2, 1, 2}), b = counting({2, 2, 2}, 10), empty = f32({2, 0, 2}, {});
  expect(run(OpKind::kConcat, {a, empty, b}, {{"axis", int64_t{1}}}), {DType::kF32, {2, 3, 2}},
         {0, 1, 10, 11, 12, 13, 2, 3, 14, 15, 16, 17});
}

TEST(RefSplit, CutsAnAxis) {
  const auto y =
      run_all(OpKind::kSplit, {counting({2, 4})}, {{"axis", int64_t{1}}, {"sizes", Ints{1, 0, 3}}}, 3);
  expect(y[0], {DType::kF32, {2, 1}}, {0, 4});
  expect(y[1], {DType::kF32, {2, 0}}, {});
  expect(y[2], {DType::kF32, {2, 3}}, {1, 2, 3, 5, 6, 7});
}

Attrs slice(Ints axes, Ints starts, Ints ends, Ints steps) {
  return {{"axes", axes}, {"starts", starts}, {"ends", ends}, {"steps", steps}};
}

TEST(RefSlice, HasPythonSemantics) {
  const Tensor x = counting({6});
  expect(run(OpKind::kSlice, {x}, slice({0}, {1}, {-1}, {2})), {DType::kF32, {2}}, {1, 3});
  expect(run(OpKind::kSlice, {x}, slice({0}, {-2}, {INT64_MAX}, {1})), {DType::kF32, {2}}, {4, 5});
  expect(run(OpKind::kSlice, {x}, slice({0}, {INT64_MAX}, {INT64_MIN}, {-1})), {DType::kF32, {6}},
         {5, 4, 3, 2, 1, 0});
  expect(run(OpKind::kSlice, {x}, slice({0}, {4}, {0}, {-2})), {DType::kF32, {2}}, {4, 2});
  expect(run(OpKind::kSlice, {x}, slice({0}, {-100}, {100}, {INT64_MAX})), {DType::kF32, {1}}, {0});
  expect(run(OpKind::kSlice, {x}, slice({0}, {100}, {200}, {1})), {DType::kF32, {0}}, {});
}

TEST(RefSlice, CutsSeveralAxes) {
  expect(run(OpKind::kSlice, {counting({3, 4})}, slice({1, 0}, {3, 1}, {0, 3}, {-1, 1})),
         {DType::kF32, {2, 3}}, {7, 6, 5, 11, 10, 9});
}

TEST(RefPad, KnowsEveryMode) {
  const Tensor x = f32({1, 3}, {1, 2, 3});
  const auto attrs = [](const char* mode) {
    return Attrs{{"pads", Ints{0, 2, 0, 1}}, {"mode", mode}, {"value", 9.0}};
  };
  const TensorType t{DType::kF32, {1, 6}};
  expect(run(OpKind::kPad, {x}, attrs("constant")), t, {9, 9, 1, 2, 3, 9});
  expect(run(OpKind::kPad, {x}, attrs("reflect")), t, {3, 2, 1, 2, 3, 2});
  expect(run(OpKind::kPad, {x}, attrs("edge")), t, {1, 1, 1, 2, 3, 3});
  expect(run(OpKind::kPad, {x}, attrs("wrap")), t, {2, 3, 1, 2, 3, 1});
}

TEST(RefPad, PadsBothAxesAndCrops) {
  const Tensor x = counting({2, 2}, 1);
  expect(run(OpKind::kPad, {x}, {{"pads", Ints{1, 0, 0, 1}}, {"mode", "edge"}}), {DType::kF32, {3, 3}},
         {1, 2, 2, 1, 2, 2, 3, 4, 4});
  expect(run(OpKind::kPad, {x}, {{"pads", Ints{0, -1, 1, 1}}, {"value", 7.0}}), {DType::kF32, {3, 2}},
         {2, 7, 4, 7, 7, 7});
  expect(run(OpKind::kPad, {counting({4})}, {{"pads", Ints{-1, -2}}}), {DType::kF32, {1}}, {1});
}

TEST(RefPad, WrapsMoreThanOnceAndFillsIntegers) {
  expect(run(OpKind::kPad, {i64({2}, {1, 2})}, {{"pads", Ints{3, 3}}, {"mode", "wrap"}}), {DType::kI64, {8}},
         {2, 1, 2, 1, 2, 1, 2, 1});
  expect(run(OpKind::kPad, {tensor<int8_t>({1}, {5})}, {{"pads", Ints{1, 0}}, {"value", -3.0}}),
         {DType::kI8, {2}}, {-3, 5});
  expect(run(OpKind::kPad, {bools({1}, {false})}, {{"pads", Ints{0, 1}}, {"value", 1.0}}),
         {DType::kBool, {2}}, {0, 1});
}

TEST(RefDepthToSpace, KnowsBothOrders) {
  const Tensor x = counting({1, 8, 1, 1});
  expect(run(OpKind::kDepthToSpace, {x}, {{"blocksize", int64_t{2}}}), {DType::kF32, {1, 2, 2, 2}},
         {0, 2, 4, 6, 1, 3, 5, 7});
  expect(run(OpKind::kDepthToSpace, {x}, {{"blocksize", int64_t{2}}, {"mode", "CRD"}}),
         {DType::kF32, {1, 2, 2, 2}}, {0, 1, 2, 3, 4, 5, 6, 7});
  expect(run(OpKind::kDepthToSpace, {counting({1, 4, 1, 2})}, {{"blocksize", int64_t{2}}}),
         {DType::kF32, {1, 1, 2, 4}}, {0, 2, 1, 3, 4, 6, 5, 7});
}

TEST(RefSpaceToDepth, UndoesDepthToSpace) {
  const Tensor x = counting({2, 8, 2, 3});
  const Attrs block = {{"blocksize", int64_t{2}}};
  const Tensor back = run(OpKind::kSpaceToDepth, {run(OpKind::kDepthToSpace, {x}, block)}, block);
  ASSERT_EQ(back.type(), x.type());
  for (size_t i = 0; i < back.data<float>().size(); ++i) EXPECT_EQ(back.data<float>()[i], x.data<float>()[i]);
  expect(run(OpKind::kSpaceToDepth, {counting({1, 1, 2, 4})}, block), {DType::kF32, {1, 4, 1, 2}},
         {0, 2, 1, 3, 4, 6, 5, 7});
}

TEST(RefTrilu, KeepsATriangle) {
  const Tensor x = counting({2, 3}, 1);
  const auto attrs = [](int64_t k, int64_t upper) { return Attrs{{"k", k}, {"upper", upper}}; };
  expect(run(OpKind::kTrilu, {x}, attrs(0, 1)), {DType::kF32, {2, 3}}, {1, 2, 3, 0, 5, 6});
  expect(run(OpKind::kTrilu, {x}, attrs(1, 1)), {DType::kF32, {2, 3}}, {0, 2, 3, 0, 0, 6});
  expect(run(OpKind::kTrilu, {x}, attrs(-1, 0)), {DType::kF32, {2, 3}}, {0, 0, 0, 4, 0, 0});
  expect(run(OpKind::kTrilu, {x}, attrs(INT64_MAX, 0)), {DType::kF32, {2, 3}}, {1, 2, 3, 4, 5, 6});
  expect(run(OpKind::kTrilu, {counting({2, 2, 2}, 1)}, attrs(0, 0)), {DType::kF32, {2, 2, 2}},
         {1, 0, 3, 4, 5, 0, 7, 8});
}

TEST(RefEyeLike, PutsOnesOnADiagonal) {
  const Tensor x = counting({2, 3});
  expect(run(OpKind::kEyeLike, {x}, {{"k", int64_t{1}}, {"to", "f64"}}), {DType::kF64, {2, 3}},
         {0, 1, 0, 0, 0, 1});
  expect(run(OpKind::kEyeLike, {x}, {{"k", int64_t{-1}}, {"to", "i32"}}), {DType::kI32, {2, 3}},
         {0, 0, 0, 1, 0, 0});
}

}  // namespace
}  // namespace limber::test
