#include "passes/differentiate.h"

#include <cmath>

#include "tests/passes/golden.h"
#include "tests/passes/interpret.h"

namespace limber {
namespace {

std::vector<ValueId> values_of(const Graph& graph, std::initializer_list<std::string_view> names) {
  std::vector<ValueId> values;
  for (std::string_view name : names) values.push_back(graph.find(name).value());
  return values;
}

// Differentiates "loss" of the statements; the gradients become the only outputs.
Graph gradients_of(std::string_view statements, std::initializer_list<std::string_view> targets) {
  Graph graph = graph_of(statements);
  const auto gradients = differentiate(graph, graph.find("loss").value(), values_of(graph, targets));
  EXPECT_TRUE(gradients.ok()) << gradients.status().message();
  if (!gradients.ok()) return graph;
  graph.mutable_outputs().clear();
  for (size_t i = 0; i < gradients->of.size(); ++i)
    graph.add_output(gradients->of[i], fmt::format("d_{}", std::data(targets)[i]));
  const Status valid = verify(graph);
  EXPECT_TRUE(valid.ok()) << valid.message() << "\n" << print(graph);
  return graph;
}

std::string complaint(std::string_view statements, std::initializer_list<std::string_view> targets) {
  Graph graph = graph_of(statements);
  const std::string before = print(graph);
  const auto gradients = differentiate(graph, graph.find("loss").value(), values_of(graph, targets));
  EXPECT_FALSE(gradients.ok());
  EXPECT_EQ(print(graph), before);
  return gradients.status().message();
}

TensorMap random_doubles(const Graph& graph, uint64_t seed) {
  Random random(seed);
  TensorMap tensors;
  for (const Value& value : graph.values()) {
    if (value.role == Role::kConstant || value.role == Role::kActivation) continue;
    Tensor tensor = *Tensor::allocate(value.type);
    for (double& x : tensor.data<double>()) x = random.uniform(-1, 1);
    tensors.emplace(value.name, std::move(tensor));
  }
  return tensors;
}

// Every gradient against central differences of the loss, the first output of the statements.
void expect_differences(std::string_view statements, std::initializer_list<std::string_view> targets) {
  const Graph forward = graph_of(statements), backward = gradients_of(statements, targets);
  TensorMap values = random_doubles(forward, 5);
  const auto loss = [&] { return element_as_double(interpret(forward, values)[0], 0); };
  const std::vector<Tensor> gradients = interpret(backward, values);
  constexpr double kStep = 1e-5;
  for (size_t t = 0; t < targets.size(); ++t) {
    SCOPED_TRACE(std::data(targets)[t]);
    int64_t i = 0;
    for (double& x : values.at(std::string(std::data(targets)[t])).data<double>()) {
      const double at = x;
      x = at + kStep;
      const double above = loss();
      x = at - kStep;
      const double quotient = (above - loss()) / (2 * kStep);
      x = at;
      EXPECT_NEAR(element_as_double(gradients[t], i), quotient, 1e-6 * std::max(1.0, std::fabs(quotient)));
      ++i;
    }
  }
}

constexpr std::string_view kPerceptron = R"(
  input %x: f32[4,3]
  param %w: f32[3,2]
  param %b: f32[2]
  %h: f32[4,2] = MatMul(%x, %w, %b) "fc"
  %r: f32[4,2] = Relu(%h) "act"
  %loss: f32[] = ReduceMean(%r) {axes=[0,1], keepdims=0} "mean"
  output %loss)";

TEST(Differentiate, WritesWhatOneWouldByHand) {
  EXPECT_EQ(print(gradients_of(kPerceptron, {"w", "b"})), R"(graph "g" {
  input %x: f32[4,3]
  param %w: f32[3,2]
  param %b: f32[2]
  const %loss/grad: f32[] = {1.0}
  const %mean/grad/constant: f32[] = {0.125}
  %h: f32[4,2] = MatMul(%x, %w, %b) "fc"
  %r: f32[4,2] = Relu(%h) "act"
  %loss: f32[] = ReduceMean(%r) {axes=[0,1], keepdims=0} "mean"
  %mean/grad: f32[1,1] = Reshape(%loss/grad) {shape=<1,1>} "mean/grad"
  %mean/grad.9: f32[1,1] = Mul(%mean/grad, %mean/grad/constant) "mean/grad"
  %mean/grad.10: f32[4,2] = Expand(%mean/grad.9) {shape=<4,2>} "mean/grad"
  %act/grad: f32[4,2] = ActivationBackward(%mean/grad.10, %r) {act="relu", from_output=1} "act/grad"
  %fc/grad: f32[3,2] = MatMul(%x, %act/grad) {trans_a=1} "fc/grad"
  %fc/grad.13: f32[2] = ReduceSum(%act/grad) {axes=[0], keepdims=0} "fc/grad"
  output %fc/grad as "d_w"
  output %fc/grad.13 as "d_b"
}
)");
}

TEST(Differentiate, ComputesNothingNobodyWants) {
  const Graph only_bias = gradients_of(kPerceptron, {"b"});
  EXPECT_EQ(count_ops(only_bias, OpKind::kMatMul), 1);
  const Graph all = gradients_of(kPerceptron, {"w", "b", "x"});
  EXPECT_EQ(count_ops(all, OpKind::kMatMul), 3);
  EXPECT_EQ(count_ops(all, OpKind::kActivationBackward), 1);
}

TEST(Differentiate, AppendsAndNamesAfterTheForwardNode) {
  Graph graph = graph_of(kPerceptron);
  const size_t forward = graph.num_nodes();
  ASSERT_TRUE(differentiate(graph, *graph.find("loss"), values_of(graph, {"w"})).ok());
  std::vector<std::string> names;
  for (size_t n = forward; n < graph.num_nodes(); ++n) {
    const std::string& name = graph.nodes()[n].name;
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"mean/grad", "act/grad", "fc/grad"}));
  EXPECT_EQ(graph.outputs().size(), 1u);
}

TEST(Differentiate, ValuesReadSeveralTimesAreSummed) {
  expect_differences(R"(
    input %x: f64[3]
    %a: f64[3] = Mul(%x, %x)
    %b: f64[3] = Sin(%x)
    %c: f64[3] = Add(%a, %b)
    %d: f64[3] = Mul(%c, %a)
    %loss: f64[1] = ReduceSum(%d) {axes=[0], keepdims=1}
    output %loss)",
                     {"x"});
}

TEST(Differentiate, SumsAsEarlyAsPossible) {
  const Graph graph = gradients_of(R"(
    input %x: f32[3]
    %a: f32[3] = Sin(%x) "a"
    %b: f32[3] = Sin(%x) "b"
    %c: f32[3] = Sin(%x) "c"
    %ab: f32[3] = Add(%a, %b) "ab"
    %abc: f32[3] = Add(%ab, %c) "abc"
    %loss: f32[] = ReduceSum(%abc) {axes=[0], keepdims=0} "sum"
    output %loss)",
                                   {"x"});
  std::vector<std::string> names;
  for (size_t n = 6; n < graph.num_nodes(); ++n) names.push_back(graph.nodes()[n].name);
  EXPECT_EQ(names, (std::vector<std::string>{"sum/grad", "sum/grad", "c/grad", "c/grad", "b/grad", "b/grad",
                                             "x/grad", "a/grad", "a/grad", "x/grad"}));
}

TEST(Differentiate, TargetsTheLossDoesNotDependOn) {
  Graph graph = graph_of(R"(
    input %x: f32[3]
    param %unused: f32[3]
    param %stepped: f32[3]
    param %side: f32[3]
    %s: f32[3] = Floor(%stepped)
    %o: f32[3] = Mul(%side, %side)
    %y: f32[3] = Mul(%x, %s)
    %loss: f32[] = ReduceSum(%y) {axes=[0], keepdims=0}
    output %loss
    output %o)");
  const size_t forward = graph.num_nodes();
  const auto none =
      differentiate(graph, *graph.find("loss"), values_of(graph, {"unused", "stepped", "side"}));
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->of, (std::vector<ValueId>{kNoValue, kNoValue, kNoValue}));
  EXPECT_EQ(graph.num_nodes(), forward);
  const auto some = differentiate(graph, *graph.find("loss"), values_of(graph, {"unused", "x", "loss"}));
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->of[0], kNoValue);
  EXPECT_NE(some->of[1], kNoValue);
  EXPECT_EQ(graph.type(some->of[2]).to_string(), "f32[]");
}

TEST(Differentiate, ActivationsMayBeTargets) {
  const Graph graph = gradients_of(kPerceptron, {"r"});
  EXPECT_EQ(count_ops(graph, OpKind::kActivationBackward), 0);
  EXPECT_EQ(graph.type(graph.outputs()[0].value).to_string(), "f32[4,2]");
}

TEST(Differentiate, AddsTheStatisticsItNeeds) {
  const Graph graph = gradients_of(R"(
    input %x: f32[4,6]
    %n: f32[4,6] = LayerNorm(%x) {axis=1, epsilon=1e-05} "norm"
    %v: f32[4,2], _ = TopK(%n) {axis=1, k=2} "best"
    %loss: f32[] = ReduceSum(%v) {axes=[0,1], keepdims=0} "sum"
    output %loss)",
                                   {"x"});
  EXPECT_TRUE(graph.find("norm/mean").has_value());
  EXPECT_TRUE(graph.find("norm/inv_std").has_value());
  EXPECT_TRUE(graph.find("best/indices").has_value());
}

TEST(Differentiate, NamesEverythingWithoutAGradient) {
  EXPECT_EQ(complaint(R"(
    input %x: f32[2,3]
    %a: f32[2,3] = SoftmaxBackward(%x, %x) {axis=1} "first"
    %b: f32[2,3] = Relu(%a) "fine"
    %c: f32[2,3] = ActivationBackward(%b, %b) {act="relu"} "second"
    %d: f32[2,3] = ActivationBackward(%x, %x) {act="relu"} "elsewhere"
    %loss: f32[] = ReduceSum(%c) {axes=[0,1], keepdims=0}
    output %loss
    output %d)",
                      {"x"}),
            "there is no gradient rule for SoftmaxBackward 'first', ActivationBackward 'second'");
}

TEST(Differentiate, RefusesWhatMakesNoSense) {
  constexpr std::string_view kNet = R"(
    input %x: f32[2]
    input %i: i64[2]
    %loss: f32[2] = Relu(%x)
    output %loss)";
  EXPECT_EQ(complaint(kNet, {"x"}), "the loss 'loss' has type f32[2], expected one floating-point number");
  constexpr std::string_view kSum = R"(
    input %x: f32[2]
    input %i: i64[2]
    %loss: f32[] = ReduceSum(%x) {axes=[0], keepdims=0}
    output %loss)";
  EXPECT_NE(complaint(kSum, {"i"}).find("'i' has type i64[2]"), std::string::npos);
  constexpr std::string_view kSymbolic = R"(
    input %x: f32[N]
    %loss: f32[] = ReduceSum(%x) {axes=[0], keepdims=0}
    output %loss)";
  EXPECT_NE(complaint(kSymbolic, {"x"}).find("bind"), std::string::npos);
}

TEST(Differentiate, FailuresOfRulesLeaveTheGraphAlone) {
  const std::string message = complaint(R"(
    input %x: f32[3]
    input %u: f32[2]
    const %i: i64[2] = {0, 1}
    %y: f32[3] = ScatterElements(%x, %i, %u) {axis=0, reduction="max"} "scatter"
    %loss: f32[] = ReduceSum(%y) {axes=[0], keepdims=0}
    output %loss)",
                                        {"x"});
  EXPECT_NE(message.find("ScatterElements 'scatter'"), std::string::npos) << message;
}

constexpr std::string_view kNet = R"(
  input %x: f64[3,2,6,6]
  input %target: f64[3,4]
  param %w1: f64[4,2,3,3]
  param %scale: f64[4]
  param %shift: f64[4]
  state %mean: f64[4]
  state %var: f64[4]
  param %w2: f64[4,4]
  param %b2: f64[4]
  %c: f64[3,4,6,6] = Conv(%x, %w1) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]} "conv"
  %n: f64[3,4,6,6], %new_mean: f64[4], %new_var: f64[4] = BatchNormTraining(%c, %scale, %shift, %mean, %var) {epsilon=0.001, momentum=0.9} "bn"
  %r: f64[3,4,6,6] = Relu(%n) "relu"
  %p: f64[3,4,3,3] = MaxPool(%r) {dilations=[1,1], kernel=[2,2], pads=[0,0,0,0], strides=[2,2]} "pool"
  %a: f64[3,4,1,1] = GlobalAveragePool(%p) "gap"
  %f: f64[3,4] = Reshape(%a) {shape=<3,4>} "flat"
  %y: f64[3,4] = Gemm(%f, %w2, %b2) {trans_b=1} "fc"
  %l: f64[3,4] = LogSoftmax(%y) {axis=1} "log_softmax"
  %t: f64[3,4] = Mul(%l, %target) "pick"
  %s: f64[] = ReduceMean(%t) {axes=[0,1], keepdims=0} "mean"
  %loss: f64[] = Neg(%s) "loss"
  output %loss
  output %new_mean
  output %new_var)";

TEST(Differentiate, AConvolutionalNetMatchesDifferences) {
  expect_differences(kNet, {"x", "w1", "scale", "shift", "w2", "b2"});
}

TEST(Differentiate, TheSameNetWithOneTargetMatchesDifferences) {
  for (std::string_view target : {"w1", "shift", "b2"}) expect_differences(kNet, {target});
}

}  // namespace
}  // namespace limber
