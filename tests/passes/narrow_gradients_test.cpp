#include "tests/passes/golden.h"
#include "tests/passes/interpret.h"

namespace limber {
namespace {

// Two layers of a backward pass; the choice is made at the very end.
constexpr std::string_view kConv = R"(
  input %x: f32[2,3,5,5]
  input %dy: f32[2,4,5,5]
  const %some: i64[2] = {1, 3}
  %r: f32[2,4,5,5] = Relu(%dy)
  %dw: f32[4,3,3,3] = ConvBackwardWeights(%x, %r) {dilations=[1,1], kernel=[3,3], pads=[1,1,1,1], strides=[1,1]} "conv"
  %t: f32[2,4,5,5] = Tanh(%r)
  %part: f32[2,3,3,3] = Gather(%dw, %some) {axis=0}
  output %part as "dw"
  output %t as "t"
)";

std::vector<OpKind> ops_of(const Graph& graph) {
  std::vector<OpKind> ops;
  for (const Node& node : graph.nodes()) ops.push_back(node.op);
  return ops;
}

// The narrowed graph gives the same numbers.
void expect_same(std::string_view statements) {
  const Graph before = graph_of(statements), after = rewritten(narrow_gradients, statements);
  const TensorMap tensors = random_tensors(before, 3);
  const std::vector<Tensor> expected = interpret(before, tensors), actual = interpret(after, tensors);
  for (size_t k = 0; k < expected.size(); ++k) {
    ASSERT_EQ(actual[k].type(), expected[k].type());
    for (int64_t i = 0; i < expected[k].elements(); ++i)
      EXPECT_NEAR(element_as_double(actual[k], i), element_as_double(expected[k], i), 1e-4) << k << " " << i;
  }
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(NarrowGradients, BackwardWeightsAreOfTheChosenChannelsAndStayWhereTheyWere) {
  const Graph graph = rewritten(narrow_gradients, kConv);
  EXPECT_EQ(ops_of(graph), (std::vector<OpKind>{OpKind::kRelu, OpKind::kGather, OpKind::kConvBackwardWeights,
                                                OpKind::kTanh}))
      << print(graph);
  EXPECT_EQ(graph.type(graph.node(NodeId{1}).outputs[0]).to_string(), "f32[2,2,5,5]");
  expect_same(kConv);
}

TEST(NarrowGradients, TheBiasKeepsAllChannels) {
  std::string text = replaced(std::string(kConv), "%dw: f32[4,3,3,3] =", "%dw: f32[4,3,3,3], %db: f32[4] =");
  text = replaced(text, "output %t", "output %db as \"db\"\n  output %t");
  const Graph graph = rewritten(narrow_gradients, text);
  EXPECT_EQ(count_ops(graph, OpKind::kReduceSum), 1);
  expect_same(text);
}

TEST(NarrowGradients, DepthwiseConvolutionsReadFewerInputsToo) {
  constexpr std::string_view kDepthwise = R"(
    input %x: f32[2,4,5,5]
    input %dy: f32[2,8,5,5]
    const %some: i64[3] = {1, 2, 7}
    %dw: f32[8,1,3,3] = ConvBackwardWeights(%x, %dy) {dilations=[1,1], groups=4, kernel=[3,3], pads=[1,1,1,1], strides=[1,1]}
    %part: f32[3,1,3,3] = Gather(%dw, %some) {axis=0}
    output %part as "dw"
  )";
  const Graph graph = rewritten(narrow_gradients, kDepthwise);
  EXPECT_EQ(count_ops(graph, OpKind::kGather), 2) << print(graph);
  expect_same(kDepthwise);
}

TEST(NarrowGradients, RowsAndColumnsOfProducts) {
  for (const char* text : {R"(
         input %a: f32[3,4]
         input %b: f32[4,5]
         const %some: i64[2] = {0, 2}
         %y: f32[3,5] = MatMul(%a, %b)
         %part: f32[2,5] = Gather(%y, %some) {axis=0}
         output %part as "y")",
                           R"(
         input %a: f32[4,3]
         input %b: f32[5,4]
         const %some: i64[3] = {4, 0, 2}
         %y: f32[3,5] = MatMul(%a, %b) {trans_a=1, trans_b=1}
         %part: f32[3,3] = Gather(%y, %some) {axis=1}
         output %part as "y")"}) {
    const Graph graph = rewritten(narrow_gradients, text);
    EXPECT_EQ(graph.node(NodeId{1}).op, OpKind::kMatMul) << print(graph);
    expect_same(text);
  }
}

TEST(NarrowGradients, WhatIsNeededAsAWholeStays) {
  expect_unchanged(narrow_gradients,
                   replaced(std::string(kConv), "output %t", "output %dw as \"all\"\n  output %t"));
  expect_unchanged(narrow_gradients, R"(
    input %x: f32[2,4,5,5]
    input %dy: f32[2,4,5,5]
    const %some: i64[1] = {1}
    %dw: f32[4,2,3,3] = ConvBackwardWeights(%x, %dy) {dilations=[1,1], groups=2, kernel=[3,3], pads=[1,1,1,1], strides=[1,1]}
    %part: f32[1,2,3,3] = Gather(%dw, %some) {axis=0}
    output %part as "dw")");
  expect_unchanged(narrow_gradients, R"(
    input %a: f32[3,4]
    input %b: f32[4,5]
    input %bias: f32[5]
    const %some: i64[2] = {0, 2}
    %y: f32[3,5] = MatMul(%a, %b, %bias)
    %part: f32[2,5] = Gather(%y, %some) {axis=0}
    output %part as "y")");
}

}  // namespace
}  // namespace limber
