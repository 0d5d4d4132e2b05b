#include <cmath>

#include "tests/backend/ref/run_op.h"

namespace limber::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr DType kFloatTypes[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16};

TEST(RefUnary, AppliesTheFunctionToEveryFloatType) {
  for (DType t : kFloatTypes) {
    const Tensor x = as(f32({4}, {-2, -0.5, 0, 4}), t);
    expect(run(OpKind::kAbs, {x}), {t, {4}}, {2, 0.5, 0, 4});
    expect(run(OpKind::kNeg, {x}), {t, {4}}, {2, 0.5, 0, -4});
    expect(run(OpKind::kRelu, {x}), {t, {4}}, {0, 0, 0, 4});
    expect(run(OpKind::kSign, {x}), {t, {4}}, {-1, -1, 0, 1});
    expect(run(OpKind::kLeakyRelu, {x}, {{"alpha", 0.25}}), {t, {4}}, {-0.5, -0.125, 0, 4});
  }
}

TEST(RefUnary, RoundsHalfToEven) {
  expect(run(OpKind::kRound, {f32({7}, {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.6f})}), {DType::kF32, {7}},
         {-2, -2, 0, 0, 2, 2, 3});
  expect(run(OpKind::kFloor, {f32({2}, {-1.5, 1.5})}), {DType::kF32, {2}}, {-2, 1});
  expect(run(OpKind::kCeil, {f32({2}, {-1.5, 1.5})}), {DType::kF32, {2}}, {-1, 2});
}

TEST(RefUnary, ComputesTranscendentalFunctions) {
  struct Case {
    OpKind op;
    float x;
    double y;
  };
  const Case cases[] = {
      {OpKind::kReciprocal, 4, 0.25},
      {OpKind::kSqrt, 9, 3},
      {OpKind::kExp, 1, std::exp(1.0)},
      {OpKind::kLog, 2, std::log(2.0)},
      {OpKind::kErf, 0.5, 0.5204998778130465},
      {OpKind::kSin, 1, 0.8414709848078965},
      {OpKind::kCos, 1, 0.5403023058681398},
      {OpKind::kTan, 1, 1.5574077246549023},
      {OpKind::kAsin, 0.5, 0.5235987755982989},
      {OpKind::kAcos, 0.5, 1.0471975511965979},
      {OpKind::kAtan, 1, 0.7853981633974483},
      {OpKind::kSinh, 1, 1.1752011936438014},
      {OpKind::kCosh, 1, 1.5430806348152437},
      {OpKind::kTanh, 1, 0.7615941559557649},
      {OpKind::kAsinh, 1, 0.881373587019543},
      {OpKind::kAcosh, 2, 1.3169578969248166},
      {OpKind::kAtanh, 0.5, 0.5493061443340548},
      {OpKind::kSigmoid, 0, 0.5},
      {OpKind::kSigmoid, -1000, 0},
      {OpKind::kSilu, 1, 0.7310585786300049},
      {OpKind::kHardSwish, 1, 4.0 / 6},
      {OpKind::kHardSwish, 5, 5},
      {OpKind::kMish, 1, 0.8650983882673103},
      {OpKind::kSoftplus, 1, 1.3132616875182228},
      {OpKind::kSoftplus, 500, 500},
      {OpKind::kSoftsign, -3, -0.75},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(op_name(c.op));
    expect(run(c.op, {f32({}, {c.x})}), {DType::kF32, {}}, {c.y}, 1e-7);
  }
}

TEST(RefUnary, ReadsItsAttributes) {
  const Tensor x = f32({3}, {-2, 0.5, 3});
  const TensorType t{DType::kF32, {3}};
  expect(run(OpKind::kGelu, {x}), t, {-0.04550026389635842, 0.34573123063700656, 2.9959503});
  expect(run(OpKind::kGelu, {x}, {{"approximate", "tanh"}}), t, {-0.04540230591, 0.34571400982, 2.99636260});
  expect(run(OpKind::kElu, {x}, {{"alpha", 2.0}}), t, {2 * std::expm1(-2.0), 0.5, 3});
  expect(run(OpKind::kCelu, {x}, {{"alpha", 2.0}}), t, {2 * std::expm1(-1.0), 0.5, 3});
  expect(run(OpKind::kSelu, {x}, {{"alpha", 2.0}, {"gamma", 3.0}}), t, {6 * std::expm1(-2.0), 1.5, 9});
  expect(run(OpKind::kThresholdedRelu, {x}, {{"alpha", 0.5}}), t, {0, 0, 3});
  expect(run(OpKind::kHardSigmoid, {x}, {{"alpha", 0.25}, {"beta", 0.5}}), t, {0, 0.625, 1});
  expect(run(OpKind::kShrink, {x}, {{"lambd", 1.0}, {"bias", 0.5}}), t, {-1.5, 0, 2.5});
  expect(run(OpKind::kClip, {x}, {{"min", -1.0}, {"max", 1.0}}), t, {-1, 0.5, 1});
  expect(run(OpKind::kClip, {x}, {{"max", 1.0}}), t, {-2, 0.5, 1});
  expect(run(OpKind::kClip, {x}, {{"min", 2.0}, {"max", 1.0}}), t, {1, 1, 1});
}

TEST(RefUnary, HandlesIntegers) {
  const Tensor x = tensor<int8_t>({4}, {-128, -3, 0, 100});
  const TensorType t{DType::kI8, {4}};
  expect(run(OpKind::kAbs, {x}), t, {-128, 3, 0, 100});
  expect(run(OpKind::kNeg, {x}), t, {-128, 3, 0, -100});
  expect(run(OpKind::kSign, {x}), t, {-1, -1, 0, 1});
  expect(run(OpKind::kRelu, {x}), t, {0, 0, 0, 100});
  expect(run(OpKind::kClip, {x}, {{"min", -5.0}, {"max", 50.0}}), t, {-5, -3, 0, 50});
  expect(run(OpKind::kClip, {x}), t, {-128, -3, 0, 100});
  const Tensor big = tensor<uint64_t>({1}, {~uint64_t{0}});
  EXPECT_EQ(run(OpKind::kAbs, {big}).data<uint64_t>()[0], ~uint64_t{0});
  EXPECT_EQ(run(OpKind::kClip, {big}, {{"min", 3.0}}).data<uint64_t>()[0], ~uint64_t{0});
}

TEST(RefUnary, TestsForNaNAndInfinity) {
  const Tensor x = f32({4}, {1, -kInf, kInf, kNaN});
  const TensorType t{DType::kBool, {4}};
  expect(run(OpKind::kIsNaN, {x}), t, {0, 0, 0, 1});
  expect(run(OpKind::kIsInf, {x}), t, {0, 1, 1, 0});
  expect(run(OpKind::kIsInf, {x}, {{"detect_negative", int64_t{0}}}), t, {0, 0, 1, 0});
  expect(run(OpKind::kIsInf, {x}, {{"detect_positive", int64_t{0}}}), t, {0, 1, 0, 0});
  expect(run(OpKind::kNot, {bools({2}, {true, false})}), {DType::kBool, {2}}, {0, 1});
  expect(run(OpKind::kRelu, {f32({1}, {kNaN})}), {DType::kF32, {1}}, {kNaN});
}

TEST(RefCast, TruncatesAndSaturatesFloats) {
  const Tensor x = f32({7}, {-1.9f, 1.9f, 300, -300, kNaN, kInf, -kInf});
  expect(as(x, DType::kI8), {DType::kI8, {7}}, {-1, 1, 127, -128, 0, 127, -128});
  expect(as(x, DType::kU8), {DType::kU8, {7}}, {0, 1, 255, 0, 0, 255, 0});
  expect(as(x, DType::kBool), {DType::kBool, {7}}, {1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(as(x, DType::kI64).data<int64_t>()[5], INT64_MAX);
  EXPECT_EQ(as(x, DType::kU64).data<uint64_t>()[5], UINT64_MAX);
}

TEST(RefCast, KeepsLowBitsOfIntegers) {
  const Tensor x = i64({3}, {-1, 256 + 7, 0});
  expect(as(x, DType::kU8), {DType::kU8, {3}}, {255, 7, 0});
  expect(as(x, DType::kI32), {DType::kI32, {3}}, {-1, 263, 0});
  expect(as(x, DType::kBool), {DType::kBool, {3}}, {1, 1, 0});
  EXPECT_EQ(as(i64({1}, {-1}), DType::kU64).data<uint64_t>()[0], UINT64_MAX);
  EXPECT_EQ(as(tensor<uint64_t>({1}, {UINT64_MAX}), DType::kF64).data<double>()[0], 0x1p64);
}

TEST(RefCast, RoundsToSixteenBitsOnce) {
  // 1 + 2^-11 + 2^-40 is above the tie between two halves but rounds to it in float.
  const Tensor x = tensor<double>({2}, {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11});
  expect(as(x, DType::kF16), {DType::kF16, {2}}, {1 + 0x1p-10, 1}, 0);
  const Tensor y = tensor<double>({1}, {1 + 0x1p-8 + 0x1p-40});
  expect(as(y, DType::kBF16), {DType::kBF16, {1}}, {1 + 0x1p-7}, 0);
  expect(as(f32({3}, {70000, kNaN, -kInf}), DType::kF16), {DType::kF16, {3}}, {kInf, kNaN, -kInf});
}

TEST(RefCast, GoesBetweenAllTypes) {
  for (int from = 0; from < kDTypeCount; ++from) {
    for (int to = 0; to < kDTypeCount; ++to) {
      const Tensor x = as(f32({2}, {0, 1}), static_cast<DType>(from));
      expect(as(x, static_cast<DType>(to)), {static_cast<DType>(to), {2}}, {0, 1});
    }
  }
}

TEST(RefBinary, Broadcasts) {
  const Tensor a = f32({2, 1}, {10, 20}), b = f32({3}, {1, 2, 3});
  expect(run(OpKind::kAdd, {a, b}), {DType::kF32, {2, 3}}, {11, 12, 13, 21, 22, 23});
  expect(run(OpKind::kSub, {a, b}), {DType::kF32, {2, 3}}, {9, 8, 7, 19, 18, 17});
  expect(run(OpKind::kMul, {b, f32({}, {2})}), {DType::kF32, {3}}, {2, 4, 6});
  expect(run(OpKind::kDiv, {a, b}), {DType::kF32, {2, 3}}, {10, 5, 10.0 / 3, 20, 10, 20.0 / 3});
  expect(run(OpKind::kAdd, {f32({0, 1}, {}), b}), {DType::kF32, {0, 3}}, {});
}

TEST(RefBinary, ComputesInEveryNumericType) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    if (t == DType::kBool) continue;
    const Tensor a = as(f32({2}, {7, 6}), t), b = as(f32({2}, {2, 3}), t);
    expect(run(OpKind::kAdd, {a, b}), {t, {2}}, {9, 9});
    expect(run(OpKind::kSub, {a, b}), {t, {2}}, {5, 3});
    expect(run(OpKind::kMul, {a, b}), {t, {2}}, {14, 18});
    expect(run(OpKind::kDiv, {a, b}), {t, {2}}, {is_float(t) ? 3.5 : 3.0, 2});
    expect(run(OpKind::kMin, {a, b}), {t, {2}}, {2, 3});
    expect(run(OpKind::kMax, {a, b}), {t, {2}}, {7, 6});
    expect(run(OpKind::kEqual, {a, a}), {DType::kBool, {2}}, {1, 1});
    expect(run(OpKind::kLess, {a, b}), {DType::kBool, {2}}, {0, 0});
  }
}

TEST(RefBinary, IntegerDivisionTruncatesAndNeverTraps) {
  const Tensor a = tensor<int32_t>({6}, {7, -7, 7, -7, 5, INT32_MIN});
  const Tensor b = tensor<int32_t>({6}, {2, 2, -2, -2, 0, -1});
  expect(run(OpKind::kDiv, {a, b}), {DType::kI32, {6}}, {3, -3, -3, 3, 0, INT32_MIN});
  const Tensor low = i64({2}, {INT64_MIN, 3}), minus = i64({2}, {-1, 0});
  EXPECT_EQ(run(OpKind::kDiv, {low, minus}).data<int64_t>()[0], INT64_MIN);
  expect(run(OpKind::kMod, {low, minus}), {DType::kI64, {2}}, {0, 0});
  expect(run(OpKind::kAdd, {tensor<uint8_t>({1}, {200}), tensor<uint8_t>({1}, {100})}), {DType::kU8, {1}},
         {44});
}

TEST(RefBinary, ModHasBothSigns) {
  const Tensor a = tensor<int32_t>({6}, {-4, 7, 5, 4, -7, 8}), b = tensor<int32_t>({6}, {2, -3, 8, -2, 3, 5});
  expect(run(OpKind::kMod, {a, b}), {DType::kI32, {6}}, {0, -2, 5, 0, 2, 3});
  expect(run(OpKind::kMod, {a, b}, {{"fmod", int64_t{1}}}), {DType::kI32, {6}}, {0, 1, 5, 0, -1, 3});
  const Tensor x = f32({2}, {-4.5, 4.5}), y = f32({2}, {2, -2});
  expect(run(OpKind::kMod, {x, y}, {{"fmod", int64_t{1}}}), {DType::kF32, {2}}, {-0.5, 0.5});
}

TEST(RefBinary, PowMixesTypes) {
  const Tensor x = f32({3}, {1, 2, 3});
  expect(run(OpKind::kPow, {x, i64({3}, {4, 5, 6})}), {DType::kF32, {3}}, {1, 32, 729});
  expect(run(OpKind::kPow, {i64({3}, {1, 2, 3}), f32({3}, {4, 5, 0.5})}), {DType::kI64, {3}}, {1, 32, 1});
  const Tensor n = tensor<int32_t>({5}, {2, -1, 0, -2, 5}), e = tensor<int32_t>({5}, {30, -3, -1, 3, 0});
  expect(run(OpKind::kPow, {n, e}), {DType::kI32, {5}}, {1 << 30, -1, 0, -8, 1});
  // Beyond 2^53, where double would round.
  EXPECT_EQ(run(OpKind::kPow, {i64({1}, {3}), i64({1}, {39})}).data<int64_t>()[0], 4052555153018976267);
}

TEST(RefBinary, MinAndMaxKeepNaN) {
  const Tensor a = f32({3}, {1, kNaN, 3}), b = f32({3}, {kNaN, 2, 4});
  expect(run(OpKind::kMin, {a, b}), {DType::kF32, {3}}, {kNaN, kNaN, 3});
  expect(run(OpKind::kMax, {a, b}), {DType::kF32, {3}}, {kNaN, kNaN, 4});
}

TEST(RefBinary, PReluBroadcastsTheSlope) {
  const Tensor x = f32({2, 2}, {-1, 2, -3, 4});
  expect(run(OpKind::kPRelu, {x, f32({2, 1}, {0.5, 2})}), {DType::kF32, {2, 2}}, {-0.5, 2, -6, 4});
}

TEST(RefBinary, ShiftsBits) {
  const Tensor x = tensor<uint8_t>({3}, {16, 4, 129}), by = tensor<uint8_t>({3}, {1, 2, 200});
  expect(run(OpKind::kBitShift, {x, by}, {{"left", int64_t{0}}}), {DType::kU8, {3}}, {8, 1, 0});
  expect(run(OpKind::kBitShift, {x, by}, {{"left", int64_t{1}}}), {DType::kU8, {3}}, {32, 16, 0});
}

TEST(RefBinary, ComparesAndCombines) {
  const Tensor a = f32({3}, {1, 2, kNaN}), b = f32({3}, {2, 2, kNaN});
  const TensorType t{DType::kBool, {3}};
  expect(run(OpKind::kEqual, {a, b}), t, {0, 1, 0});
  expect(run(OpKind::kLess, {a, b}), t, {1, 0, 0});
  expect(run(OpKind::kLessOrEqual, {a, b}), t, {1, 1, 0});
  expect(run(OpKind::kGreater, {b, a}), t, {1, 0, 0});
  expect(run(OpKind::kGreaterOrEqual, {b, a}), t, {1, 1, 0});
  const Tensor p = bools({4}, {false, false, true, true}), q = bools({4}, {false, true, false, true});
  expect(run(OpKind::kAnd, {p, q}), {DType::kBool, {4}}, {0, 0, 0, 1});
  expect(run(OpKind::kOr, {p, q}), {DType::kBool, {4}}, {0, 1, 1, 1});
  expect(run(OpKind::kXor, {p, q}), {DType::kBool, {4}}, {0, 1, 1, 0});
  expect(run(OpKind::kEqual, {p, q}), {DType::kBool, {4}}, {1, 0, 0, 1});
}

TEST(RefBinary, WherePicks) {
  const Tensor c = bools({2, 1}, {true, false});
  expect(run(OpKind::kWhere, {c, f32({3}, {1, 2, 3}), f32({}, {-1})}), {DType::kF32, {2, 3}},
         {1, 2, 3, -1, -1, -1});
  expect(run(OpKind::kWhere, {c, i64({2, 1}, {1, 2}), i64({2, 1}, {3, 4})}), {DType::kI64, {2, 1}}, {1, 4});
}

}  // namespace
}  // namespace limber::test
