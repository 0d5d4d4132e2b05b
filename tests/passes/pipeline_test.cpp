#include "tests/passes/golden.h"

namespace limber {
namespace {

TEST(RunPasses, NamesThePassThatFails) {
  Graph graph = graph_of("input %x: f32[4]\n%y: f32[4] = Relu(%x)\noutput %y");
  const Pass passes[] = {{"fine", [](Graph&) { return Status(); }},
                         {"picky", [](Graph&) { return unsupported("not today"); }}};
  const Status status = run_passes(graph, passes);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(status.message(), "pass 'picky': not today");
}

#ifdef LIMBER_CHECKS
TEST(RunPasses, ShowsBeforeAndAfterWhenAPassBreaksTheGraph) {
  Graph graph = graph_of("input %x: f32[4]\n%y: f32[4] = Relu(%x)\noutput %y");
  const Pass passes[] = {{"careless", [](Graph& g) {
                            g.mutable_value(*g.find("y")).type.shape = {5};
                            return Status();
                          }}};
  const Status status = run_passes(graph, passes);
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.message().find("pass 'careless' broke the graph"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("--- before\ngraph \"g\""), std::string::npos);
  EXPECT_NE(status.message().find("%y: f32[5] = Relu(%x)"), std::string::npos);
}
#endif

TEST(OptimizeForInference, ResidualBlockBecomesItsConvolutions) {
  const char* conv = "{dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}";
  Graph graph = graph_of(fmt::format(
      "input %x: f32[N,4,8,8]\nparam %w1: f32[4,4,3,3]\nparam %w2: f32[4,4,3,3]\nparam %s: f32[4]\nparam %b: "
      "f32[4]\n"
      "state %m: f32[4]\nstate %v: f32[4]\n%a: f32[N,4,8,8] = Conv(%x, %w1) {0}\n"
      "%c: f32[N,4,8,8] = BatchNorm(%a, %s, %b, %m, %v) {{epsilon=0.1}}\n%d: f32[N,4,8,8] = Relu(%c)\n"
      "%e: f32[N,4,8,8] = Conv(%d, %w2) {0}\n%f: f32[N,4,8,8] = BatchNorm(%e, %s, %b, %m, %v) "
      "{{epsilon=0.1}}\n"
      "%g: f32[N,4,8,8] = Add(%f, %x)\n%y: f32[N,4,8,8] = Relu(%g)\noutput %y",
      conv));
  ASSERT_TRUE(optimize_for_inference(graph).ok());
  std::vector<std::string> kinds;
  for (const Node& node : graph.nodes()) {
    if (graph.type(node.outputs[0]).shape[0] != Dim(Symbol("N"))) continue;
    kinds.push_back(fmt::format("{} {} {}", op_name(node.op), node.attrs.s("act", ""), node.inputs.size()));
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"Conv relu 3", "Conv relu 4"})) << print(graph);
}

TEST(OptimizeForInference, ASecondTimeChangesNothing) {
  Graph graph = graph_of(
      "input %x: f32[N,7,8]\nparam %w: f32[6,8]\nparam %b: f32[6]\nconst %k: f32[] = {4.0}\n%t: f32[8,6] = "
      "Transpose(%w) {perm=[1,0]}\n"
      "%p: f32[N,7,6] = MatMul(%x, %t)\n%a: f32[N,7,6] = Add(%b, %p)\n%g: f32[N,7,6] = Sigmoid(%a)\n%h: "
      "f32[N,7,6] = Mul(%a, %g)\n"
      "%y: f32[N,7,6] = Div(%h, %k)\noutput %y");
  ASSERT_TRUE(optimize_for_inference(graph).ok());
  const std::string once = print(graph);
  ASSERT_TRUE(optimize_for_inference(graph).ok());
  EXPECT_EQ(print(graph), once);
}

// Deep and wide; a pass that searched the graph for every node would take minutes.
TEST(OptimizeForInference, LargeGraphs) {
  Graph graph;
  const TensorType type{DType::kF32, {1, 4, 8, 8}};
  const ValueId w = graph.add_parameter("w", {DType::kF32, {4, 4, 3, 3}}),
                c = graph.add_parameter("c", {DType::kF32, {4}});
  ValueId x = graph.add_input("x", type);
  std::vector<ValueId> all;
  for (int i = 0; i < 3000; ++i) {
    const auto ints = [](int64_t v, size_t n) { return std::vector<int64_t>(n, v); };
    const Attrs conv{
        {"pads", ints(1, 4)}, {"strides", ints(1, 2)}, {"dilations", ints(1, 2)}, {"groups", int64_t{1}}};
    const ValueId a = graph.add(OpKind::kConv, {x, w}, conv, type, "conv");
    const ValueId b = graph.add(OpKind::kBatchNorm, {a, c, c, c, c}, {{"epsilon", 0.1}}, type, "norm");
    const ValueId s = graph.add(OpKind::kAdd, {b, x}, {}, type, "sum");
    x = graph.add(OpKind::kRelu, {s}, {}, type, "relu");
    all.push_back(x);
  }
  const TensorType wide{DType::kF32, {1, 12000, 8, 8}};
  graph.add_output(graph.add(OpKind::kConcat, all, {{"axis", int64_t{1}}}, wide, "all"), "y");
  const Status status = optimize_for_inference(graph);
  ASSERT_TRUE(status.ok()) << status.message().substr(0, 1000);
  EXPECT_EQ(count_ops(graph, OpKind::kConv), 3000);
  EXPECT_EQ(count_ops(graph, OpKind::kBatchNorm), 0);
  EXPECT_EQ(count_ops(graph, OpKind::kRelu), 0);
}

}  // namespace
}  // namespace limber
