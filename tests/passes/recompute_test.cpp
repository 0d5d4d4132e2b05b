#include "passes/recompute.h"

#include <set>

#include "passes/differentiate.h"
#include "tests/passes/golden.h"
#include "tests/passes/interpret.h"

namespace limber {
namespace {

// Two residual blocks. Of each block the first normalisation can be made again from its input, the sum only
// together with what it adds.
constexpr std::string_view kBlocks = R"(
  input %x: f32[2,4,8,8]
  param %w1: f32[4,4,3,3]
  param %w2: f32[4,4,3,3]
  param %scale: f32[4]
  param %shift: f32[4]
  state %mean1: f32[4]
  state %var1: f32[4]
  state %mean2: f32[4]
  state %var2: f32[4]
  %c1: f32[2,4,8,8] = Conv(%x, %w1) {dilations=[1,1], pads=[1,1,1,1], strides=[1,1]} "conv1"
  %n1: f32[2,4,8,8], %m1: f32[4], %v1: f32[4] = BatchNormTraining(%c1, %scale, %shift, %mean1, %var1) {act="relu", epsilon=0.001, momentum=0.9} "bn1"
  %c2: f32[2,4,8,8] = Conv(%n1, %w2) {dilations=[1,1], pads=[1,1,1,1], strides=[1,1]} "conv2"
  %n2: f32[2,4,8,8], %m2: f32[4], %v2: f32[4] = BatchNormTraining(%c2, %scale, %shift, %mean2, %var2) {epsilon=0.001, momentum=0.9} "bn2"
  %sum: f32[2,4,8,8] = Add(%n2, %x) "sum"
  %r: f32[2,4,8,8] = Relu(%sum) "relu"
  %square: f32[2,4,8,8] = Mul(%r, %r) "square"
  %loss: f32[] = ReduceSum(%square) {axes=[0,1,2,3], keepdims=0} "loss"
  output %loss
  output %m1
  output %m2)";

struct Differentiated {
  Graph graph;
  NodeId backward;
};

Differentiated differentiated() {
  Differentiated made{graph_of(kBlocks), kNoNode};
  Graph& graph = made.graph;
  const std::vector<ValueId> targets = {*graph.find("w1"), *graph.find("w2"), *graph.find("scale")};
  const auto gradients = differentiate(graph, *graph.find("loss"), targets);
  EXPECT_TRUE(gradients.ok()) << gradients.status().message();
  for (ValueId v : gradients->of) graph.add_output(v, "d" + std::to_string(v.index));
  graph.compact();
  made.backward = NodeId{graph.value(*graph.find("loss")).producer.index + 1};
  return made;
}

TEST(Recompute, FindsWhatOnePassMakes) {
  const Differentiated step = differentiated();
  const Recomputable found = recomputable(step.graph, step.backward);
  std::set<std::string> cheap, dear;
  for (size_t i = 0; i < found.values.size(); ++i)
    (i < found.cheap ? cheap : dear).insert(step.graph.value(found.values[i]).name);
  EXPECT_EQ(cheap, (std::set<std::string>{"n1"}));
  EXPECT_TRUE(dear.contains("r"));
}

TEST(Recompute, ChangesNoBit) {
  const Differentiated step = differentiated();
  const TensorMap stored = random_tensors(step.graph, 1);
  const auto expected = interpret(step.graph, stored);
  const std::vector<ValueId> values = recomputable(step.graph, step.backward).values;
  for (size_t count = 1; count <= values.size(); ++count) {
    Graph graph = step.graph;
    ASSERT_TRUE(recompute(graph, std::span(values).first(count), step.backward).ok());
    ASSERT_TRUE(verify(graph).ok()) << verify(graph).message() << "\n" << print(graph);
    EXPECT_EQ(count_ops(graph, OpKind::kBatchNormTraining), 2);
    EXPECT_GE(count_ops(graph, OpKind::kBatchNormApply), 1);
    const auto outputs = interpret(graph, stored);
    ASSERT_EQ(outputs.size(), expected.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(std::memcmp(outputs[i].raw(), expected[i].raw(), expected[i].bytes()), 0)
          << "output " << i << " with " << count << " values made again";
    }
  }
}

}  // namespace
}  // namespace limber
