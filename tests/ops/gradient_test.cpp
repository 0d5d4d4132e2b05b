// Every operator has a gradient that is tested or is known not to have one.
#include "ops/gradient.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/ops/gradient_case.h"
#include "tests/passes/interpret.h"

namespace limber::testing {
namespace {

// Their results are no floating-point numbers, or they are themselves backward or optimiser operators.
const std::set<OpKind> kNotDifferentiable = {OpKind::kNot,
                                             OpKind::kIsNaN,
                                             OpKind::kIsInf,
                                             OpKind::kBitShift,
                                             OpKind::kAnd,
                                             OpKind::kOr,
                                             OpKind::kXor,
                                             OpKind::kEqual,
                                             OpKind::kLess,
                                             OpKind::kLessOrEqual,
                                             OpKind::kGreater,
                                             OpKind::kGreaterOrEqual,
                                             OpKind::kArgMax,
                                             OpKind::kArgMin,
                                             OpKind::kShapeOf,
                                             OpKind::kNonMaxSuppression,
                                             OpKind::kNonZero,
                                             OpKind::kConvBackwardData,
                                             OpKind::kConvBackwardWeights,
                                             OpKind::kBatchNormBackward,
                                             OpKind::kBatchNormApply,
                                             OpKind::kLayerNormBackward,
                                             OpKind::kSoftmaxBackward,
                                             OpKind::kActivationBackward,
                                             OpKind::kMaxPoolBackward,
                                             OpKind::kAveragePoolBackward,
                                             OpKind::kGatherBackward,
                                             OpKind::kResizeBackward,
                                             OpKind::kProdBackward,
                                             OpKind::kSgdUpdate,
                                             OpKind::kAdamUpdate};

std::vector<GradientCase> all_cases() {
  std::vector<GradientCase> all;
  for (const auto& part : {elementwise_gradient_cases(), binary_gradient_cases(), layer_gradient_cases(),
                           product_gradient_cases(), norm_gradient_cases(), reduce_gradient_cases(),
                           movement_gradient_cases(), index_gradient_cases()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(Gradients, EveryOperatorHasThreeCasesOrNoGradient) {
  std::map<OpKind, int> counts;
  for (const GradientCase& c : all_cases()) ++counts[c.op];
  for (int k = 0; k < kOpCount; ++k) {
    const auto op = static_cast<OpKind>(k);
    const bool none = gradient_support(op) == GradientSupport::kNone;
    EXPECT_EQ(none, kNotDifferentiable.contains(op)) << op_name(op);
    EXPECT_TRUE(none || counts[op] >= 3) << op_name(op) << " has " << counts[op];
  }
}

TEST(Gradients, FlatOperatorsAreKnown) {
  for (OpKind op :
       {OpKind::kFloor, OpKind::kCeil, OpKind::kRound, OpKind::kSign, OpKind::kHardmax, OpKind::kEyeLike})
    EXPECT_EQ(gradient_support(op), GradientSupport::kZero) << op_name(op);
  EXPECT_EQ(gradient_support(OpKind::kConv), GradientSupport::kRule);
}

TEST(Gradients, NodesAreNamedAfterTheOneTheyServe) {
  Graph graph;
  const TensorType type{DType::kF32, {2, 3}};
  const ValueId x = graph.add_input("x", type), dy = graph.add_input("dy", type);
  const auto node = emit_node(graph, OpKind::kTanh, {x}, {}, 1, "squash");
  ASSERT_TRUE(node.ok());
  GradientContext context(graph, *node, {dy}, {true});
  op_def(OpKind::kTanh).gradient(context);
  ASSERT_TRUE(context.status().ok());
  EXPECT_EQ(graph.nodes().back().name, "squash/grad");
  EXPECT_EQ(graph.value(context.gradients()[0]).name, "squash/grad");
}

TEST(Gradients, UnwantedInputsCostNothing) {
  Graph graph;
  const TensorType type{DType::kF32, {2, 2}};
  const ValueId a = graph.add_input("a", type), b = graph.add_input("b", type),
                dy = graph.add_input("dy", type);
  const auto node = emit_node(graph, OpKind::kMatMul, {a, b}, {}, 1, "product");
  ASSERT_TRUE(node.ok());
  GradientContext context(graph, *node, {dy}, {false, true});
  op_def(OpKind::kMatMul).gradient(context);
  EXPECT_EQ(context.gradients()[0], kNoValue);
  EXPECT_NE(context.gradients()[1], kNoValue);
  EXPECT_EQ(graph.num_nodes(), 2u);
}

TEST(Gradients, HaveTheDtypeOfTheInput) {
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    Graph graph;
    const ValueId x = graph.add_input("x", {dtype, {4}}), dy = graph.add_input("dy", {DType::kF64, {4}});
    const auto node = emit_node(graph, OpKind::kCast, {x}, {{"to", text("f64")}}, 1, "cast");
    ASSERT_TRUE(node.ok());
    GradientContext context(graph, *node, {dy}, {true});
    op_def(OpKind::kCast).gradient(context);
    ASSERT_TRUE(context.status().ok());
    EXPECT_EQ(graph.type(context.gradients()[0]), graph.type(x));
    const ValueId half = context.scale(context.gradients()[0], 0.5);
    EXPECT_EQ(graph.type(half).dtype, dtype);
  }
}

// dx of one node for dy = 1 everywhere; the second operand is a constant.
std::vector<double> gradients_with_constant(OpKind op, const Floats& x, const Floats& constant) {
  Graph graph;
  const TensorType type{DType::kF64, {static_cast<int64_t>(x.size())}};
  const ValueId a = graph.add_input("a", type);
  const Shape shape = constant.size() == 1 ? Shape{} : type.shape;
  const ValueId b = graph.add_constant("b", Tensor::from<double>(constant, shape));
  const auto node = emit_node(graph, op, {a, b}, {}, 1, "node");
  EXPECT_TRUE(node.ok());
  const ValueId dy = graph.add_input("dy", type);
  GradientContext context(graph, *node, {dy}, {true, false});
  op_def(op).gradient(context);
  EXPECT_TRUE(context.status().ok());
  if (context.gradients()[0] == kNoValue) return {};
  graph.add_output(context.gradients()[0], "da");
  const Tensor ones = Tensor::from<double>(Floats(x.size(), 1), type.shape);
  const Tensor da = interpret(graph, {{"a", Tensor::from<double>(x, type.shape)}, {"dy", ones}})[0];
  return Floats(da.data<double>().begin(), da.data<double>().end());
}

TEST(Gradients, PowersOfConstantsAreExactAtZero) {
  EXPECT_EQ(gradients_with_constant(OpKind::kPow, {-3, 0, 2}, {2}), (Floats{-6, 0, 4}));
  EXPECT_EQ(gradients_with_constant(OpKind::kPow, {-1, 0, 2}, {3}), (Floats{3, 0, 12}));
  EXPECT_EQ(gradients_with_constant(OpKind::kPow, {-1, 0, 2}, {1}), (Floats{1, 1, 1}));
  EXPECT_EQ(gradients_with_constant(OpKind::kPow, {-1, 0, 2}, {0}), Floats{});
  EXPECT_EQ(gradients_with_constant(OpKind::kPow, {0, 0, 2}, {0, 2, -1}), (Floats{0, 0, -0.25}));
}

TEST(Gradients, TiesAreSplitEvenly) {
  EXPECT_EQ(gradients_with_constant(OpKind::kMax, {1, 2, 3}, {2, 2, 2}), (Floats{0, 0.5, 1}));
  EXPECT_EQ(gradients_with_constant(OpKind::kMin, {1, 2, 3}, {2}), (Floats{1, 0.5, 0}));
}

}  // namespace
}  // namespace limber::testing
