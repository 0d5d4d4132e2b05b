#include "passes/splice.h"

#include "passes/cut_points.h"
#include "tests/passes/golden.h"

namespace limber {
namespace {

constexpr std::string_view kSplicedNet = R"(
  input %x: f32[N,4]
  param %w: f32[4,4]
  param %v: f32[4,4]
  %a: f32[N,4] = MatMul(%x, %w) "first"
  %b: f32[N,4] = Relu(%a) "relu"
  %c: f32[N,4] = MatMul(%b, %v) "second"
  %d: f32[N,4] = Add(%c, %a) "sum"
  output %d as "y")";

Result<Graph> with_block(std::string_view statements, std::string_view from = "a",
                         std::string_view to = "d") {
  const Graph graph = graph_of(kSplicedNet);
  const Graph block = graph_of(statements);
  return splice(graph, *graph.find(from), *graph.find(to), block);
}

TEST(Splice, ReplacesAndDropsWhatIsNotNeeded) {
  const auto result = with_block(R"(
    input %in: f32[N,4]
    param %s: f32[4]
    %out: f32[N,4] = Mul(%in, %s) "scale"
    output %out as "o")");
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(print(*result), print(graph_of(R"(
    input %x: f32[N,4]
    param %w: f32[4,4]
    param %s: f32[4]
    %a: f32[N,4] = MatMul(%x, %w) "first"
    %out: f32[N,4] = Mul(%a, %s) "scale"
    output %out as "y")")));
}

TEST(Splice, ABlockMayPassItsInput) {
  const auto result = with_block("input %in: f32[N,4]\noutput %in as \"o\"");
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_TRUE(verify(*result).ok());
  EXPECT_EQ(result->num_nodes(), 1u);
  EXPECT_EQ(result->value(result->outputs()[0].value).name, "a");
}

TEST(Splice, EqualNamesAreOneParameter) {
  const auto result = with_block(R"(
    input %in: f32[N,4]
    param %w: f32[4,4]
    %x: f32[N,4] = MatMul(%in, %w) "again"
    output %x)");
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_TRUE(verify(*result).ok()) << verify(*result).message();
  EXPECT_EQ(result->node(NodeId{0}).inputs[1], result->node(NodeId{1}).inputs[1]);
  EXPECT_EQ(result->value(result->inputs()[0]).name, "x");
}

TEST(Splice, ActivationsMakeWayForNamesOfParameters) {
  const auto result = with_block(R"(
    input %in: f32[N,4]
    param %a: f32[4]
    %w: f32[N,4] = Mul(%in, %a) "scale"
    output %w)");
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_TRUE(verify(*result).ok());
  EXPECT_EQ(result->value(*result->find("a")).role, Role::kParameter);
  EXPECT_EQ(result->value(*result->find("w")).role, Role::kParameter);
}

TEST(Splice, KeepsWhatOtherOutputsNeed) {
  Graph graph = graph_of(kSplicedNet);
  graph.add_output(*graph.find("b"), "side");
  const Graph block = graph_of("input %in: f32[N,4]\n%o: f32[N,4] = Exp(%in)\noutput %o");
  const auto result = splice(graph, *graph.find("a"), *graph.find("d"), block);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_TRUE(verify(*result).ok());
  EXPECT_EQ(result->num_nodes(), 3u);
  EXPECT_EQ(result->outputs()[1].name, "side");
  EXPECT_FALSE(result->find("v"));
}

TEST(Splice, SaysWhatDoesNotFit) {
  const auto message = [](const Result<Graph>& result) {
    EXPECT_EQ(result.status().code(), Code::kInvalidArgument);
    return result.status().message();
  };
  EXPECT_EQ(message(with_block("input %in: f32[N,3]\n%o: f32[N,3] = Relu(%in)\noutput %o")),
            "the input of block 'g' has type f32[N,3], 'a' has f32[N,4]");
  EXPECT_EQ(message(with_block(
                "input %in: f32[N,4]\n%o: f32[N] = ReduceSum(%in) {axes=[1], keepdims=0}\noutput %o")),
            "the output of block 'g' has type f32[N], 'd' has f32[N,4]");
  EXPECT_EQ(
      message(with_block("input %in: f32[N,4]\nparam %w: f32[4]\n%o: f32[N,4] = Mul(%in, %w)\noutput %o")),
      "block 'g': parameter 'w' has type f32[4,4] in one graph and f32[4] in the other; rename one of them");
  EXPECT_EQ(
      message(with_block("input %in: f32[N,4]\nparam %x: f32[4]\n%o: f32[N,4] = Mul(%in, %x)\noutput %o")),
      "block 'g': parameter 'x': the name is taken by something else");
  EXPECT_EQ(
      message(with_block("input %a: f32[N,4]\ninput %b: f32[N,4]\n%o: f32[N,4] = Mul(%a, %b)\noutput %o")),
      "block 'g' has 2 inputs and 1 outputs, expected one of each");
  EXPECT_EQ(message(with_block("input %in: f32[N,4]\n%o: f32[N,4] = Relu(%in)\noutput %o", "b", "d")),
            "'d' depends on 'x' not only through 'b', which is no cut point before it");
}

TEST(Chain, JoinsAndSharesParameters) {
  const Graph one =
      graph_of("input %x: f32[N,4]\nparam %w: f32[4,4]\n%t: f32[N,4] = MatMul(%x, %w)\noutput %t");
  const Graph two =
      graph_of("input %t: f32[N,4]\nparam %w: f32[4,4]\n%x: f32[N,4] = MatMul(%t, %w)\noutput %x as \"y\"");
  const Graph* blocks[] = {&one, &two, &two};
  const auto whole = chain(blocks);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  ASSERT_TRUE(verify(*whole).ok()) << verify(*whole).message();
  EXPECT_EQ(whole->num_nodes(), 3u);
  EXPECT_EQ(whole->outputs()[0].name, "y");
  EXPECT_EQ(whole->value(whole->inputs()[0]).name, "x");
  for (const Node& node : whole->nodes()) EXPECT_EQ(whole->value(node.inputs[1]).name, "w");
}

TEST(Chain, SaysWhatDoesNotFit) {
  const Graph one = graph_of("input %x: f32[N,4]\n%t: f32[N,4] = Relu(%x)\noutput %t");
  const Graph two = graph_of("input %x: f32[N,3]\n%t: f32[N,3] = Relu(%x)\noutput %t");
  const Graph* blocks[] = {&one, &two};
  EXPECT_EQ(chain(blocks).status().message(), "block 0 'g' gives f32[N,4], block 1 'g' expects f32[N,3]");
}

}  // namespace
}  // namespace limber
