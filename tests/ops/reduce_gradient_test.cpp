#include <gtest/gtest.h>

#include "ops/gradient.h"
#include "tests/ops/gradient_case.h"
#include "tests/passes/interpret.h"

namespace limber::testing {
namespace {

Attrs over(const Ints& axes, int64_t keepdims) { return {{"axes", axes}, {"keepdims", keepdims}}; }

void add_reductions(std::vector<GradientCase>& cases, OpKind op, double low = -2, double high = 2) {
  cases.push_back({op, {"f64[2,3]"}, over({0, 1}, 0), low, high});
  cases.push_back({op, {"f64[2,3,4]"}, over({1}, 0), low, high});
  cases.push_back({op, {"f64[2,3,4]"}, over({0, 2}, 1), low, high});
  cases.push_back({op, {"f64[2,3]"}, over({}, 0), low, high});
}

// One rule applied to one input; dy is all ones.
std::vector<double> gradient_at(OpKind op, const Attrs& attrs, const std::vector<double>& at) {
  Graph graph;
  const TensorType type{DType::kF64, {static_cast<int64_t>(at.size())}};
  const ValueId x = graph.add_input("x", type);
  const auto node = emit_node(graph, op, {x}, attrs, 1, "node");
  EXPECT_TRUE(node.ok()) << node.status().message();
  const TensorType of_y = graph.type(graph.node(*node).outputs[0]);
  const ValueId dy = graph.add_input("dy", of_y);
  GradientContext context(graph, *node, {dy}, {true});
  op_def(op).gradient(context);
  graph.add_output(context.gradients()[0], "dx");
  Tensor ones = *Tensor::zeros(of_y);
  for (double& one : ones.data<double>()) one = 1;
  const auto values = Tensor::from<double>(at, type.shape);
  const Tensor dx = interpret(graph, {{"x", values}, {"dy", ones}})[0];
  return std::vector<double>(dx.data<double>().begin(), dx.data<double>().end());
}

}  // namespace

std::vector<GradientCase> reduce_gradient_cases() {
  std::vector<GradientCase> cases;
  for (OpKind op :
       {OpKind::kReduceSum, OpKind::kReduceMean, OpKind::kReduceMax, OpKind::kReduceMin, OpKind::kReduceProd,
        OpKind::kReduceL1, OpKind::kReduceL2, OpKind::kReduceLogSumExp, OpKind::kReduceSumSquare}) {
    add_reductions(cases, op);
  }
  add_reductions(cases, OpKind::kReduceLogSum, 0.5, 2);
  for (OpKind op : {OpKind::kSoftmax, OpKind::kLogSoftmax, OpKind::kHardmax}) {
    cases.push_back({op, {"f64[2,5]"}, {{"axis", num(1)}}});
    cases.push_back({op, {"f64[2,3,2]"}, {{"axis", num(1)}}});
    cases.push_back({op, {"f64[4]"}, {{"axis", num(0)}}});
  }
  for (int64_t largest : {0, 1}) {
    const Attrs attrs{{"largest", largest}, {"k", num(2)}};
    cases.push_back({OpKind::kTopK, {"f64[2,5]"}, Attrs(attrs).set("axis", num(1)), -2, 2, {}, 2});
    cases.push_back({OpKind::kTopK, {"f64[3,2,2]"}, Attrs(attrs).set("axis", num(0)), -2, 2, {}, 2});
    for (int64_t exclusive : {0, 1}) {
      const Attrs sum{{"exclusive", exclusive}, {"reverse", largest}};
      cases.push_back({OpKind::kCumSum, {"f64[2,4]"}, Attrs(sum).set("axis", num(1))});
      cases.push_back({OpKind::kCumSum, {"f64[3,2]"}, Attrs(sum).set("axis", num(0))});
    }
  }
  return cases;
}

TEST(ReduceGradients, MatchDifferences) { expect_gradients(reduce_gradient_cases()); }

TEST(ReduceGradients, AtTheirKinks) {
  const Attrs all = over({0}, 0);
  EXPECT_EQ(gradient_at(OpKind::kReduceMax, all, {1, 3, 3, 2}), (Floats{0, 0.5, 0.5, 0}));
  EXPECT_EQ(gradient_at(OpKind::kReduceMin, all, {1, 3, 1, 1}), (Floats{1.0 / 3, 0, 1.0 / 3, 1.0 / 3}));
  EXPECT_EQ(gradient_at(OpKind::kReduceL2, all, {0, 0}), (Floats{0, 0}));
  EXPECT_EQ(gradient_at(OpKind::kReduceProd, all, {2, 0, 5}), (Floats{0, 10, 0}));
  EXPECT_EQ(gradient_at(OpKind::kReduceProd, all, {2, 0, 0}), (Floats{0, 0, 0}));
  EXPECT_EQ(gradient_at(OpKind::kLpNorm, {{"axis", num(0)}, {"p", num(2)}}, {0, 0}), (Floats{0, 0}));
  EXPECT_EQ(gradient_at(OpKind::kRelu, {}, {-1, 0, 1}), (Floats{0, 0, 1}));
}

}  // namespace limber::testing
