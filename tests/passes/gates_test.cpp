#include "passes/gates.h"

#include <cmath>
#include <cstring>

#include "passes/differentiate.h"
#include "tests/passes/golden.h"
#include "tests/passes/interpret.h"

namespace limber {
namespace {

// A convolution with normalisation, one that is read twice, and a depthwise one.
constexpr std::string_view kGatedNet = R"(
  input %x: f32[2,3,6,6]
  param %w1: f32[5,3,3,3]
  param %s: f32[5]
  param %b: f32[5]
  state %m: f32[5]
  state %v: f32[5]
  param %w2: f32[5,5,1,1]
  param %wd: f32[5,1,3,3]
  %c1: f32[2,5,6,6] = Conv(%x, %w1) {dilations=[1,1], pads=[1,1,1,1], strides=[1,1]} "first"
  %n: f32[2,5,6,6] = BatchNorm(%c1, %s, %b, %m, %v) {epsilon=1e-05}
  %r: f32[2,5,6,6] = Relu(%n)
  %c2: f32[2,5,6,6] = Conv(%r, %w2) {dilations=[1,1], pads=[0,0,0,0], strides=[1,1]} "second"
  %t: f32[2,5,6,6] = Tanh(%c2)
  %a: f32[2,5,6,6] = Add(%t, %c2)
  %d: f32[2,5,6,6] = Conv(%a, %wd) {dilations=[1,1], groups=5, pads=[1,1,1,1], strides=[1,1]} "depthwise"
  output %d as "d"
)";

struct Gated {
  Graph graph;
  std::vector<FilterGate> gates;
  TensorMap tensors;
};

Gated gated(const GateOptions& options, bool open) {
  Gated made{graph_of(kGatedNet), {}, {}};
  auto gates = insert_gates(made.graph, options);
  EXPECT_TRUE(gates.ok()) << gates.status().message();
  if (!gates.ok()) return made;
  made.gates = *std::move(gates);
  const Status valid = verify(made.graph);
  EXPECT_TRUE(valid.ok()) << valid.message() << print(made.graph);
  made.tensors = random_tensors(graph_of(kGatedNet), 4);
  Parameters params;
  EXPECT_TRUE(open_gates(made.graph, made.gates, params).ok());
  Random random(9);
  for (const FilterGate& gate : made.gates) {
    for (const std::string& name : {gate.weight, gate.bias}) {
      Tensor tensor = *params.writable(name);
      if (!open) {
        for (float& x : tensor.data<float>()) x = static_cast<float>(random.uniform(-1, 1.5));
      }
      made.tensors.emplace(name, tensor);
    }
  }
  return made;
}

TEST(Gates, OpenOnesChangeNoBit) {
  const Graph plain = graph_of(kGatedNet);
  for (const GateOptions& options : {GateOptions{}, GateOptions{.kept = 1.0}}) {
    const Gated made = gated(options, true);
    ASSERT_EQ(made.gates.size(), 3u);
    const Tensor expected = interpret(plain, made.tensors)[0],
                 actual = interpret(made.graph, made.tensors)[0];
    ASSERT_EQ(actual.type(), expected.type());
    EXPECT_EQ(std::memcmp(actual.raw(), expected.raw(), expected.bytes()), 0);
  }
}

// relu(mean |x| * weight + bias) of each image, by hand.
std::vector<double> first_gates(const TensorMap& tensors, int64_t image) {
  const Tensor &x = tensors.at("x"), &weight = tensors.at("gate/w1/weight"),
               &bias = tensors.at("gate/w1/bias");
  std::vector<double> gates;
  for (int64_t o = 0; o < 5; ++o) {
    double sum = element_as_double(bias, o);
    for (int64_t c = 0; c < 3; ++c) {
      double mean = 0;
      for (int64_t p = 0; p < 36; ++p) mean += std::abs(element_as_double(x, (image * 3 + c) * 36 + p)) / 36;
      sum += mean * element_as_double(weight, c * 5 + o);
    }
    gates.push_back(std::max(0.0, sum));
  }
  return gates;
}

TEST(Gates, ValuesAreTheirFormulaAndTheLargestAreKept) {
  for (const double kept : {1.0, 0.4, 0.01}) {
    Gated made = gated({.kept = kept}, false);
    ASSERT_EQ(made.gates.size(), 3u);
    EXPECT_EQ(made.gates[0].layer, "w1");
    made.graph.mutable_outputs().clear();
    made.graph.add_output(made.gates[0].value, "gate");
    const Tensor values = interpret(made.graph, made.tensors)[0];
    const auto count = static_cast<size_t>(std::max(1.0, std::ceil(kept * 5)));
    for (int64_t image = 0; image < 2; ++image) {
      const std::vector<double> gates = first_gates(made.tensors, image);
      std::vector<double> sorted = gates;
      std::sort(sorted.rbegin(), sorted.rend());
      for (int64_t o = 0; o < 5; ++o) {
        const double gate = gates[static_cast<size_t>(o)];
        EXPECT_NEAR(element_as_double(values, image * 5 + o), gate >= sorted[count - 1] ? gate : 0, 1e-5);
      }
    }
  }
}

// The gate stands behind the normalisation: what it closes is zero, not the shift.
TEST(Gates, AClosedGateLeavesZero) {
  Gated made = gated({}, true);
  for (float& x : made.tensors.at("gate/w1/bias").data<float>()) x = 0;
  const ValueId relu = *made.graph.find("r");
  made.graph.mutable_outputs().clear();
  made.graph.add_output(relu, "r");
  const Tensor values = interpret(made.graph, made.tensors)[0];
  for (const float x : values.data<float>()) EXPECT_EQ(x, 0);
}

TEST(Gates, AreTrainedLikeAnyWeight) {
  Gated made = gated({.kept = 0.5}, false);
  const ValueId out = made.graph.outputs()[0].value;
  const ValueId loss = *emit(made.graph, OpKind::kReduceSum, {out},
                             {{"axes", std::vector<int64_t>{0, 1, 2, 3}}, {"keepdims", int64_t{0}}});
  const ValueId weight = *made.graph.find("gate/w2/weight");
  const auto gradients = differentiate(made.graph, loss, std::vector{weight});
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  made.graph.mutable_outputs().clear();
  made.graph.add_output(loss, "loss");
  made.graph.add_output(gradients->of[0], "gradient");
  const std::vector<Tensor> results = interpret(made.graph, made.tensors);
  constexpr float kStep = 1e-3f;
  int moving = 0;
  for (int64_t i = 0; i < 25; ++i) {
    float& at = made.tensors.at("gate/w2/weight").data<float>()[static_cast<size_t>(i)];
    const float before = at;
    at = before + kStep;
    const double above = element_as_double(interpret(made.graph, made.tensors)[0], 0);
    at = before - kStep;
    const double below = element_as_double(interpret(made.graph, made.tensors)[0], 0);
    at = before;
    const double quotient = (above - below) / (2 * kStep);
    EXPECT_NEAR(element_as_double(results[1], i), quotient, 0.05 * std::max(1.0, std::abs(quotient))) << i;
    moving += quotient != 0;
  }
  EXPECT_GT(moving, 0);
}

TEST(Gates, AreFoundAgain) {
  for (const GateOptions& options : {GateOptions{}, GateOptions{.kept = 0.5}}) {
    const Gated made = gated(options, true);
    const Result<Graph> again = parse(print(made.graph));
    ASSERT_TRUE(again.ok()) << again.status().message();
    const std::vector<FilterGate> found = find_gates(*again);
    ASSERT_EQ(found.size(), made.gates.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].layer, made.gates[i].layer);
      EXPECT_EQ(found[i].weight, made.gates[i].weight);
      EXPECT_EQ(found[i].bias, made.gates[i].bias);
      if (options.kept) continue;
      EXPECT_EQ(again->value(found[i].value).name, made.graph.value(made.gates[i].value).name);
    }
  }
  EXPECT_TRUE(find_gates(graph_of(kGatedNet)).empty());
}

TEST(Gates, WhatCannotBeGatedIsSaid) {
  Graph graph = graph_of("input %x: f32[2,3]\n %y: f32[2,3] = Relu(%x)\n output %y as \"y\"");
  const std::string before = print(graph);
  EXPECT_NE(insert_gates(graph).status().message().find("no convolution"), std::string::npos);
  EXPECT_EQ(print(graph), before);
  Graph net = graph_of(kGatedNet);
  for (const double kept : {0.0, 1.5, -0.1})
    EXPECT_NE(insert_gates(net, {.kept = kept}).status().message().find("more than 0 and at most 1"),
              std::string::npos);
}

}  // namespace
}  // namespace limber
