#include <gtest/gtest.h>

#include <set>

#include "ops/op_def.h"

namespace limber {
namespace {

constexpr OpKind kAllOps[] = {
#define LIMBER_OP(name) OpKind::k##name,
#include "ir/op_list.inc"
#undef LIMBER_OP
};

// op_def() must work while other globals are still being constructed.
const int kMinInputsBeforeMain = op_def(OpKind::kConv).min_inputs;

TEST(Definitions, EveryOperatorHasASoundOne) {
  for (OpKind op : kAllOps) {
    SCOPED_TRACE(op_name(op));
    const OpDef& def = op_def(op);
    EXPECT_EQ(def.op, op);
    EXPECT_GE(def.min_inputs, 1);
    EXPECT_TRUE(def.max_inputs == -1 || def.max_inputs >= def.min_inputs);
    EXPECT_GE(def.min_outputs, 1);
    EXPECT_TRUE(def.max_outputs == -1 || def.max_outputs >= def.min_outputs);
    EXPECT_NE(def.infer, nullptr);
    EXPECT_NE(def.flops, nullptr);
    std::set<std::string_view> names;
    for (const AttrSpec& attr : def.attrs) {
      EXPECT_FALSE(attr.name.empty());
      EXPECT_TRUE(names.insert(attr.name).second) << attr.name;
    }
  }
}

TEST(Definitions, WorkBeforeMain) { EXPECT_EQ(kMinInputsBeforeMain, 2); }

TEST(Definitions, FamiliesHaveTheRightArity) {
  for (OpKind op : kAllOps) {
    SCOPED_TRACE(op_name(op));
    EXPECT_LE(is_unary(op) + is_binary(op) + is_reduction(op), 1);
    EXPECT_TRUE(!is_unary(op) || op_def(op).max_inputs == 1);
    EXPECT_TRUE(!is_reduction(op) || op_def(op).max_inputs == 1);
    EXPECT_TRUE(!is_binary(op) || op_def(op).max_inputs == 2);
    EXPECT_TRUE(!is_comparison(op) || is_binary(op));
    EXPECT_EQ(is_reduction(op), op_name(op).starts_with("Reduce"));
  }
  EXPECT_TRUE(is_unary(OpKind::kCast));
  EXPECT_TRUE(is_binary(OpKind::kPRelu));
  EXPECT_FALSE(is_comparison(OpKind::kAnd));
  EXPECT_TRUE(is_comparison(OpKind::kGreaterOrEqual));
  EXPECT_FALSE(is_unary(OpKind::kSoftmax));
}

}  // namespace
}  // namespace limber
