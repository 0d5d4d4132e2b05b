#include "ops/static_value.h"

#include <gtest/gtest.h>

namespace limber {
namespace {

const Dim kN(Symbol("N"));

StaticValue ints(std::vector<Dim> dims) { return static_from_dims(dims); }
StaticValue floats(std::vector<double> values) {
  return {DType::kF32, {static_cast<int64_t>(values.size())}, {values.begin(), values.end()}};
}

std::optional<StaticValue> eval(OpKind op, const std::vector<StaticValue>& inputs, TensorType out,
                                const Attrs& attrs = {}) {
  std::vector<const StaticValue*> values;
  std::vector<TensorType> types;
  for (const auto& v : inputs) types.push_back({v.dtype, Shape::of(v.dims)});
  std::vector<const TensorType*> pointers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    values.push_back(&inputs[i]);
    pointers.push_back(&types[i]);
  }
  auto results = evaluate_static(op, attrs, pointers, values, {&out, 1});
  if (!results) return std::nullopt;
  return (*results)[0];
}

TensorType i64(Shape shape) { return {DType::kI64, std::move(shape)}; }

TEST(StaticValue, ShapeOfKeepsSymbols) {
  const TensorType x{DType::kF32, Shape{kN, 3, Dim(Symbol("N"), 2, 1)}};
  const TensorType* types[] = {&x};
  const StaticValue* values[] = {nullptr};
  const TensorType out = i64({3});
  const auto shape = evaluate_static(OpKind::kShapeOf, {}, types, values, {&out, 1});
  ASSERT_TRUE(shape.has_value());
  EXPECT_EQ((*shape)[0], ints({kN, 3, Dim(Symbol("N"), 2, 1)}));
}

TEST(StaticValue, ArithmeticIsExactOrUnknown) {
  EXPECT_EQ(eval(OpKind::kMul, {ints({kN}), ints({4})}, i64({1})), ints({Dim(Symbol("N"), 4)}));
  EXPECT_EQ(eval(OpKind::kDiv, {ints({Dim(Symbol("N"), 4)}), ints({2})}, i64({1})),
            ints({Dim(Symbol("N"), 2)}));
  EXPECT_EQ(eval(OpKind::kDiv, {ints({kN}), ints({2})}, i64({1})), std::nullopt);
  EXPECT_EQ(eval(OpKind::kMul, {ints({kN}), ints({kN})}, i64({1})), std::nullopt);
  EXPECT_EQ(eval(OpKind::kDiv, {ints({-7}), ints({2})}, i64({1})), ints({-3}));
  EXPECT_EQ(eval(OpKind::kDiv, {ints({1}), ints({0})}, i64({1})), std::nullopt);
  EXPECT_EQ(eval(OpKind::kDiv, {ints({INT64_MIN}), ints({-1})}, i64({1})), std::nullopt);
  EXPECT_EQ(eval(OpKind::kMod, {ints({-7}), ints({3})}, i64({1})), ints({2}));
  EXPECT_EQ(eval(OpKind::kMod, {ints({-7}), ints({3})}, i64({1}), {{"fmod", int64_t{1}}}), ints({-1}));
  EXPECT_EQ(eval(OpKind::kAdd, {ints({INT64_MAX}), ints({1})}, i64({1})), std::nullopt);
}

TEST(StaticValue, ComparisonsKnowThatSymbolsArePositive) {
  const auto flag = [](OpKind op, Dim a, Dim b) -> std::optional<int64_t> {
    const auto r = eval(op, {ints({a}), ints({b})}, {DType::kBool, Shape{1}});
    if (!r) return std::nullopt;
    return std::get<Dim>(r->elements[0]).value();
  };
  EXPECT_EQ(flag(OpKind::kEqual, kN, -1), 0);
  EXPECT_EQ(flag(OpKind::kEqual, kN, kN), 1);
  EXPECT_EQ(flag(OpKind::kEqual, kN, 1), std::nullopt);
  EXPECT_EQ(flag(OpKind::kGreater, kN, 0), 1);
  EXPECT_EQ(flag(OpKind::kLess, Dim(Symbol("N"), -1, 0), 0), 1);
  EXPECT_EQ(flag(OpKind::kLessOrEqual, kN, 5), std::nullopt);
}

TEST(StaticValue, SymbolsSurviveFloatsWhileTheyAreIntegers) {
  const auto cast = eval(OpKind::kCast, {ints({kN})}, {DType::kF32, Shape{1}}, {{"to", std::string("f32")}});
  ASSERT_TRUE(cast.has_value());
  const auto doubled = eval(OpKind::kMul, {*cast, floats({2})}, {DType::kF32, Shape{1}});
  ASSERT_TRUE(doubled.has_value());
  const auto floored = eval(OpKind::kFloor, {*doubled}, {DType::kF32, Shape{1}});
  ASSERT_TRUE(floored.has_value());
  EXPECT_EQ(eval(OpKind::kCast, {*floored}, i64({1}), {{"to", std::string("i64")}}),
            ints({Dim(Symbol("N"), 2)}));
  EXPECT_EQ(eval(OpKind::kMul, {*cast, floats({1.5})}, {DType::kF32, Shape{1}}), std::nullopt);
}

TEST(StaticValue, MovementFollowsTheOperators) {
  const StaticValue x{DType::kI64, {2, 3}, {Dim(0), Dim(1), Dim(2), Dim(3), Dim(4), Dim(5)}};
  const auto perm = eval(OpKind::kTranspose, {x}, i64({3, 2}), {{"perm", std::vector<int64_t>{1, 0}}});
  EXPECT_EQ(perm->elements, (std::vector<StaticElement>{Dim(0), Dim(3), Dim(1), Dim(4), Dim(2), Dim(5)}));
  const auto slice = eval(OpKind::kSlice, {x}, i64({2, 2}),
                          {{"axes", std::vector<int64_t>{1}},
                           {"starts", std::vector<int64_t>{-1}},
                           {"ends", std::vector<int64_t>{INT64_MIN}},
                           {"steps", std::vector<int64_t>{-2}}});
  EXPECT_EQ(slice->elements, (std::vector<StaticElement>{Dim(2), Dim(0), Dim(5), Dim(3)}));
  const StaticValue minus{DType::kI64, {}, {Dim(-1)}};
  const auto row = eval(OpKind::kGather, {x, minus}, i64({3}), {{"axis", int64_t{0}}});
  EXPECT_EQ(row->elements, (std::vector<StaticElement>{Dim(3), Dim(4), Dim(5)}));
  const StaticValue outside{DType::kI64, {}, {Dim(2)}};
  EXPECT_EQ(eval(OpKind::kGather, {x, outside}, i64({3}), {{"axis", int64_t{0}}}), std::nullopt);
  const auto sum =
      eval(OpKind::kReduceSum, {x}, i64({3}), {{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{0}}});
  EXPECT_EQ(sum->elements, (std::vector<StaticElement>{Dim(3), Dim(5), Dim(7)}));
}

TEST(StaticValue, WhatIsTooLargeOrDoesNotFitIsUnknown) {
  EXPECT_EQ(eval(OpKind::kExpand, {ints({1})}, i64({kMaxStaticElements + 1})), std::nullopt);
  EXPECT_EQ(eval(OpKind::kCast, {ints({300})}, {DType::kU8, Shape{1}}, {{"to", std::string("u8")}}),
            std::nullopt);
  EXPECT_FALSE(static_from_tensor(Tensor::scalar<uint64_t>(UINT64_MAX)).has_value());
}

TEST(StaticValue, TensorsComeBack) {
  const Tensor t = Tensor::from<int32_t>({-1, 2, INT32_MAX}, Shape{3});
  const auto v = static_from_tensor(t);
  ASSERT_TRUE(v.has_value());
  const Tensor again = tensor_from_static(*v);
  ASSERT_EQ(again.type(), t.type());
  EXPECT_EQ(std::memcmp(again.raw(), t.raw(), t.bytes()), 0);
}

}  // namespace
}  // namespace limber
