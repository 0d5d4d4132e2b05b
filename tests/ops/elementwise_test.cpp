#include <gtest/gtest.h>

#include "tests/ops/type_case.h"

namespace limber::testing {
namespace {

TEST(ElementwiseTypes, Unary) {
  expect_types({
      {OpKind::kIdentity, {"bool[2]"}, {}, {"bool[2]"}},
      {OpKind::kRelu, {"f32[N,3,8,8]"}, {}, {"f32[N,3,8,8]"}},
      {OpKind::kRelu, {"i32[4]"}, {}, {"i32[4]"}},
      {OpKind::kNeg, {"i64[]"}, {}, {"i64[]"}},
      {OpKind::kGelu, {"f32[2]"}, {{"approximate", text("tanh")}}, {"f32[2]"}},
      {OpKind::kLeakyRelu, {"f16[2N+1]"}, {{"alpha", 0.1}}, {"f16[2N+1]"}},
      {OpKind::kClip, {"i64[3]"}, {{"min", 0.0}}, {"i64[3]"}},
      {OpKind::kClip, {"f32[3]"}, {}, {"f32[3]"}},
      {OpKind::kNot, {"bool[N]"}, {}, {"bool[N]"}},
      {OpKind::kIsNaN, {"f32[N]"}, {}, {"bool[N]"}},
      {OpKind::kIsInf, {"f64[2]"}, {{"detect_negative", num(0)}}, {"bool[2]"}},
      {OpKind::kCast, {"bool[N,2]"}, {{"to", text("f32")}}, {"f32[N,2]"}},
      {OpKind::kSelu, {"f32[0]"}, {{"alpha", 1.0}, {"gamma", 1.0}}, {"f32[0]"}},
  });
}

TEST(ElementwiseTypes, Broadcasting) {
  expect_types({
      {OpKind::kAdd, {"f32[N,3,8,8]", "f32[3,1,1]"}, {}, {"f32[N,3,8,8]"}},
      {OpKind::kAdd, {"f32[1,4]", "f32[N,1]"}, {}, {"f32[N,4]"}},
      {OpKind::kSub, {"f32[]", "f32[2,3]"}, {}, {"f32[2,3]"}},
      {OpKind::kMul, {"i64[0,3]", "i64[1,3]"}, {}, {"i64[0,3]"}},
      {OpKind::kPow, {"f32[2]", "i64[]"}, {}, {"f32[2]"}},
      {OpKind::kPow, {"i32[2]", "f32[2]"}, {}, {"i32[2]"}},
      {OpKind::kMod, {"f32[2]", "f32[1]"}, {{"fmod", num(1)}}, {"f32[2]"}},
      {OpKind::kPRelu, {"f32[N,3,8,8]", "f32[3,1,1]"}, {}, {"f32[N,3,8,8]"}},
      {OpKind::kBitShift, {"u8[3]", "u8[3]"}, {{"left", num(1)}}, {"u8[3]"}},
      {OpKind::kXor, {"bool[2,1]", "bool[3]"}, {}, {"bool[2,3]"}},
      {OpKind::kEqual, {"bool[N]", "bool[N]"}, {}, {"bool[N]"}},
      {OpKind::kLess, {"f32[N,1]", "f32[5]"}, {}, {"bool[N,5]"}},
      {OpKind::kWhere, {"bool[N,1]", "f32[4]", "f32[]"}, {}, {"f32[N,4]"}},
  });
}

TEST(ElementwiseTypes, Hostile) {
  expect_failures({
      {OpKind::kSqrt, {"i32[2]"}, {}, "expected a floating-point type"},
      {OpKind::kAbs, {"bool[2]"}, {}, "expected a numeric type"},
      {OpKind::kNeg, {"u8[2]"}, {}, "expected a signed numeric type"},
      {OpKind::kNot, {"f32[2]"}, {}, "expected bool"},
      {OpKind::kRelu, {}, {}, "0 inputs, expected 1"},
      {OpKind::kRelu, {"_"}, {}, "input 0 is missing"},
      {OpKind::kRelu, {"f32[2]", "f32[2]"}, {}, "2 inputs, expected 1"},
      {OpKind::kRelu, {"f32[2]"}, {}, "2 outputs, expected 1", 2},
      {OpKind::kRelu, {"f32[2]"}, {}, "0 outputs, expected 1", -1},
      {OpKind::kRelu, {"f32[2]"}, {{"alpha", 1.0}}, "unknown attribute 'alpha'"},
      {OpKind::kElu, {"f32[2]"}, {}, "attribute 'alpha' (float) is missing"},
      {OpKind::kElu, {"f32[2]"}, {{"alpha", num(1)}}, "attribute 'alpha' is of kind int, expected float"},
      {OpKind::kGelu, {"f32[2]"}, {{"approximate", text("best")}}, "expected one of 'none', 'tanh'"},
      {OpKind::kIsInf, {"f32[2]"}, {{"detect_negative", num(7)}}, "expected a value from 0 to 1"},
      {OpKind::kCast, {"f32[2]"}, {{"to", text("complex")}}, "expected the name of a dtype"},
      {OpKind::kRelu, {"f32[-1]"}, {}, "negative dimension"},
      {OpKind::kRelu, {"f32[-2N]"}, {}, "negative or too large"},
      {OpKind::kRelu, {"f32[1,1,1,1,1,1,1,1,1]"}, {}, "expected at most 8"},
      {OpKind::kRelu, {"f32[1099511627777]"}, {}, "more than 2^40 elements"},
      {OpKind::kRelu, {"f32[4294967296,4294967296,N]"}, {}, "more than 2^40 elements"},
      {OpKind::kRelu, {"f32[9223372036854775807,9223372036854775807]"}, {}, "more than 2^40 elements"},
      {OpKind::kAdd, {"f32[2]", "f64[2]"}, {}, "expected the dtype of input 0, f32"},
      {OpKind::kAdd, {"bool[2]", "bool[2]"}, {}, "expected a numeric type"},
      {OpKind::kAdd, {"f32[2]", "f32[3]"}, {}, "does not broadcast"},
      {OpKind::kAdd, {"f32[N]", "f32[3]"}, {}, "does not broadcast"},
      {OpKind::kAdd, {"f32[2]", "_"}, {}, "input 1 is missing"},
      {OpKind::kAdd, {"f32[1099511627776,1]", "f32[1,1099511627776]"}, {}, "output 0: type"},
      {OpKind::kAnd, {"i32[2]", "i32[2]"}, {}, "expected bool"},
      {OpKind::kLess, {"bool[2]", "bool[2]"}, {}, "expected a numeric type"},
      {OpKind::kPow, {"f32[2]", "bool[2]"}, {}, "expected a numeric type"},
      {OpKind::kPRelu,
       {"f32[2]", "f32[3,2]"},
       {},
       "slope has type f32[3,2], which does not broadcast to [2]"},
      {OpKind::kBitShift, {"f32[2]", "f32[2]"}, {{"left", num(1)}}, "expected an integer type"},
      {OpKind::kBitShift, {"u8[2]", "u8[2]"}, {{"left", num(-1)}}, "'left' is -1"},
      {OpKind::kWhere, {"f32[2]", "f32[2]", "f32[2]"}, {}, "condition"},
      {OpKind::kWhere, {"bool[2]", "f32[2]", "i32[2]"}, {}, "expected the same dtype"},
  });
}

}  // namespace
}  // namespace limber::testing
