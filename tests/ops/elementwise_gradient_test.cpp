#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/gradient_case.h"

namespace limber::testing {
namespace {

// The three shapes of one operator of one input.
void add_unary(std::vector<GradientCase>& cases, OpKind op, double low = -2, double high = 2,
               const Attrs& attrs = {}) {
  for (const char* type : {"f64[7]", "f64[2,3]", "f64[]"}) cases.push_back({op, {type}, attrs, low, high});
}

void add_broadcasts(std::vector<GradientCase>& cases, OpKind op, double low = -2, double high = 2,
                    const Attrs& attrs = {}) {
  cases.push_back({op, {"f64[2,3]", "f64[2,3]"}, attrs, low, high});
  cases.push_back({op, {"f64[2,3]", "f64[3]"}, attrs, low, high});
  cases.push_back({op, {"f64[1,3]", "f64[4,1,1]"}, attrs, low, high});
  cases.push_back({op, {"f64[]", "f64[2,2]"}, attrs, low, high});
}

}  // namespace

std::vector<GradientCase> elementwise_gradient_cases() {
  std::vector<GradientCase> cases;
  for (OpKind op : {OpKind::kIdentity, OpKind::kAbs,      OpKind::kNeg,     OpKind::kSign, OpKind::kFloor,
                    OpKind::kCeil,     OpKind::kRound,    OpKind::kExp,     OpKind::kErf,  OpKind::kSin,
                    OpKind::kCos,      OpKind::kAtan,     OpKind::kSinh,    OpKind::kCosh, OpKind::kTanh,
                    OpKind::kAsinh,    OpKind::kRelu,     OpKind::kSigmoid, OpKind::kSilu, OpKind::kMish,
                    OpKind::kSoftplus, OpKind::kSoftsign, OpKind::kGelu}) {
    add_unary(cases, op);
  }
  for (OpKind op : {OpKind::kReciprocal, OpKind::kSqrt, OpKind::kLog}) add_unary(cases, op, 0.5, 2);
  for (OpKind op : {OpKind::kAsin, OpKind::kAcos, OpKind::kAtanh, OpKind::kTan})
    add_unary(cases, op, -0.8, 0.8);
  add_unary(cases, OpKind::kAcosh, 1.5, 3);
  add_unary(cases, OpKind::kReciprocal, -2, -0.5);
  add_unary(cases, OpKind::kHardSwish, -5, 5);
  add_unary(cases, OpKind::kGelu, -2, 2, {{"approximate", text("tanh")}});
  add_unary(cases, OpKind::kCast, -2, 2, {{"to", text("f64")}});
  for (double alpha : {0.2, 0.0, -0.3, 1.5}) {
    add_unary(cases, OpKind::kLeakyRelu, -2, 2, {{"alpha", alpha}});
    add_unary(cases, OpKind::kElu, -2, 2, {{"alpha", alpha}});
  }
  for (double alpha : {0.5, 2.0}) {
    add_unary(cases, OpKind::kCelu, -2, 2, {{"alpha", alpha}});
    add_unary(cases, OpKind::kThresholdedRelu, -3, 3, {{"alpha", alpha}});
    add_unary(cases, OpKind::kShrink, -3, 3, {{"lambd", alpha}, {"bias", 0.3}});
    add_unary(cases, OpKind::kHardSigmoid, -4, 4, {{"alpha", 0.4 * alpha}, {"beta", 0.5}});
  }
  add_unary(cases, OpKind::kSelu, -2, 2, {{"alpha", 1.67}, {"gamma", 1.05}});
  add_unary(cases, OpKind::kSelu, -2, 2, {{"alpha", -0.5}, {"gamma", 1.05}});
  add_unary(cases, OpKind::kSelu, -2, 2, {{"alpha", 0.5}, {"gamma", -2.0}});
  add_unary(cases, OpKind::kClip, -2, 2, {{"min", -0.5}, {"max", 1.0}});
  add_unary(cases, OpKind::kClip, -2, 2, {{"min", 0.0}});
  add_unary(cases, OpKind::kClip, -2, 2, {{"max", 0.5}});
  return cases;
}

std::vector<GradientCase> binary_gradient_cases() {
  std::vector<GradientCase> cases;
  for (OpKind op : {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kMin, OpKind::kMax})
    add_broadcasts(cases, op);
  add_broadcasts(cases, OpKind::kDiv, 0.5, 2);
  add_broadcasts(cases, OpKind::kDiv, -2, -0.5);
  add_broadcasts(cases, OpKind::kPow, 0.5, 2);
  cases.push_back({OpKind::kPow, {"f64[6]", "i64[6]"}, {}, -2, 2, {{1, {0, 1, 2, 3, -1, -2}}}});
  cases.push_back({OpKind::kPow, {"f64[2,3]", "i64[3]"}, {}, -2, 2, {{1, {0, 1, 2}}}});
  for (int64_t fmod : {0, 1}) {
    add_broadcasts(cases, OpKind::kMod, 0.6, 3, {{"fmod", fmod}});
    add_broadcasts(cases, OpKind::kMod, -3, -0.6, {{"fmod", fmod}});
  }
  cases.push_back({OpKind::kPRelu, {"f64[2,3,4]", "f64[2,3,4]"}});
  cases.push_back({OpKind::kPRelu, {"f64[2,3,4]", "f64[3,1]"}});
  cases.push_back({OpKind::kPRelu, {"f64[5]", "f64[]"}});
  cases.push_back({OpKind::kWhere, {"bool[2,3]", "f64[2,3]", "f64[2,3]"}});
  cases.push_back({OpKind::kWhere, {"bool[3]", "f64[2,1]", "f64[]"}});
  cases.push_back({OpKind::kWhere, {"bool[4,1]", "f64[1]", "f64[4,3]"}});
  return cases;
}

TEST(ElementwiseGradients, MatchDifferences) { expect_gradients(elementwise_gradient_cases()); }
TEST(BinaryGradients, MatchDifferences) { expect_gradients(binary_gradient_cases()); }

}  // namespace limber::testing
