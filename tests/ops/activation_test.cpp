#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/type_case.h"

namespace limber::testing {
namespace {

TEST(Activation, RoundTripsThroughAttributes) {
  struct Case {
    Node node;
    std::string name;
    double alpha, beta;
  };
  const auto node = [](OpKind op, Attrs attrs = {}) { return Node{op, {}, {}, std::move(attrs), ""}; };
  for (const Case& c : std::vector<Case>{
           {node(OpKind::kRelu), "relu", 0, 0},
           {node(OpKind::kLeakyRelu, {{"alpha", 0.1}}), "leaky_relu", 0.1, 0},
           {node(OpKind::kClip, {{"min", 0.0}, {"max", 6.0}}), "clip", 0, 6},
           {node(OpKind::kClip, {{"min", 0.0}}), "clip", 0, HUGE_VAL},
           {node(OpKind::kSigmoid), "sigmoid", 0, 0},
           {node(OpKind::kTanh), "tanh", 0, 0},
           {node(OpKind::kHardSigmoid, {{"alpha", 0.2}, {"beta", 0.5}}), "hard_sigmoid", 0.2, 0.5},
           {node(OpKind::kHardSwish), "hard_swish", 0, 0},
           {node(OpKind::kSilu), "silu", 0, 0},
           {node(OpKind::kGelu), "gelu", 0, 0},
           {node(OpKind::kGelu, {{"approximate", text("tanh")}}), "gelu_tanh", 0, 0},
           {node(OpKind::kElu, {{"alpha", 1.0}}), "elu", 1, 0},
           {node(OpKind::kMish), "mish", 0, 0},
           {node(OpKind::kSoftplus), "softplus", 0, 0},
       }) {
    SCOPED_TRACE(c.name);
    const auto activation = as_activation(c.node);
    ASSERT_TRUE(activation.has_value());
    EXPECT_EQ(activation->alpha, c.alpha);
    EXPECT_EQ(activation->beta, c.beta);
    Attrs attrs;
    set_activation(attrs, *activation);
    EXPECT_EQ(attrs.s("act"), c.name);
    const Activation back = fused_activation(attrs);
    EXPECT_EQ(back.op, c.node.op);
    EXPECT_EQ(back.alpha, c.alpha);
    EXPECT_EQ(back.beta, c.beta);
    EXPECT_EQ(back.tanh_gelu, c.name == "gelu_tanh");
    EXPECT_TRUE(infer(OpKind::kMatMul, {"f32[2,2]", "f32[2,2]"}, attrs, 1).ok());
  }
}

TEST(Activation, NoneLeavesNoTrace) {
  Attrs attrs = {{"act", text("clip")}, {"act_alpha", 0.0}, {"act_beta", 6.0}, {"groups", num(1)}};
  set_activation(attrs, Activation());
  EXPECT_EQ(attrs, (Attrs{{"groups", num(1)}}));
  EXPECT_EQ(fused_activation(attrs).op, OpKind::kIdentity);
  EXPECT_EQ(fused_activation({{"act", text("")}}).op, OpKind::kIdentity);
}

TEST(Activation, OthersDoNotFuse) {
  for (OpKind op : {OpKind::kIdentity, OpKind::kExp, OpKind::kSoftmax, OpKind::kCast, OpKind::kSelu}) {
    EXPECT_FALSE(as_activation({op, {}, {}, {}, ""}).has_value()) << op_name(op);
  }
}

}  // namespace
}  // namespace limber::testing
