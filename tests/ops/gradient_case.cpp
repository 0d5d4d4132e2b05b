#include "tests/ops/gradient_case.h"

#include <algorithm>
#include <cmath>

#include "ops/gradient.h"
#include "tests/passes/interpret.h"

namespace limber::testing {
namespace {

// One node between inputs, and a dy as an input for every output that has one.
struct OneNode {
  Graph graph;
  NodeId node;
  std::vector<ValueId> dys;
};

// Statistics of normalisations are outputs for the rule's sake.
bool is_result(OpKind op, size_t output) {
  return output == 0 || (op != OpKind::kLayerNorm && op != OpKind::kBatchNormTraining);
}

Result<OneNode> build(const GradientCase& c) {
  OneNode one;
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    inputs.push_back(
        c.inputs[i] == "_" ? kNoValue : one.graph.add_input(fmt::format("x{}", i), parse_type(c.inputs[i])));
  }
  LIMBER_ASSIGN(one.node, emit_node(one.graph, c.op, inputs, c.attrs, c.num_outputs, "node"));
  const std::vector<ValueId> outputs = one.graph.node(one.node).outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorType type = one.graph.type(outputs[i]);
    const bool used = is_float(type.dtype) && is_result(c.op, i) && static_cast<int>(i) != c.without_dy;
    one.dys.push_back(used ? one.graph.add_input(fmt::format("dy{}", i), type) : kNoValue);
  }
  return one;
}

Tensor random_tensor(const TensorType& type, Random& random, double low, double high) {
  Tensor tensor = *Tensor::zeros(type);
  if (type.dtype == DType::kBool) {
    for (bool& x : tensor.data<bool>()) x = random.below(2) == 0;
  } else {
    for (double& x : tensor.data<double>()) x = random.uniform(low, high);
  }
  return tensor;
}

TensorMap values_for(const GradientCase& c, const Graph& graph) {
  Random random(17 * static_cast<uint64_t>(c.op) + c.inputs.size());
  TensorMap values;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const auto id = graph.find(fmt::format("x{}", i));
    if (!id) continue;
    const TensorType type = graph.type(*id);
    const auto given = c.integers.find(i);
    values[graph.value(*id).name] = given == c.integers.end()
                                        ? random_tensor(type, random, c.low, c.high)
                                        : Tensor::from<int64_t>(given->second, type.shape);
  }
  for (ValueId v : graph.inputs()) {
    const std::string& name = graph.value(v).name;
    if (name.starts_with("dy")) values[name] = random_tensor(graph.type(v), random, -1, 1);
  }
  return values;
}

// The sum of outputs times their dys.
double loss(const Graph& forward, const TensorMap& values) {
  const std::vector<Tensor> outputs = interpret(forward, values);
  double sum = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto dy = values.find(fmt::format("dy{}", i));
    if (dy == values.end()) continue;
    for (int64_t k = 0; k < outputs[i].elements(); ++k)
      sum += element_as_double(outputs[i], k) * element_as_double(dy->second, k);
  }
  return sum;
}

std::vector<double> difference_quotients(const Graph& forward, TensorMap values, const std::string& input) {
  constexpr double kStep = 1e-5;
  std::vector<double> quotients;
  for (double& x : values.at(input).data<double>()) {
    const double at = x;
    x = at + kStep;
    const double above = loss(forward, values);
    x = at - kStep;
    const double below = loss(forward, values);
    x = at;
    quotients.push_back((above - below) / (2 * kStep));
  }
  return quotients;
}

int64_t emitted(const Graph& graph) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [](const Node& node) { return node.name == "node/grad"; });
}

// What the rule computes for the wanted inputs; empty where it gives nothing.
std::vector<Tensor> gradients_of(const OneNode& one, std::vector<bool> wanted, const TensorMap& values) {
  Graph graph = one.graph;
  GradientContext context(graph, one.node, one.dys, std::move(wanted));
  op_def(graph.node(one.node).op).gradient(context);
  EXPECT_TRUE(context.status().ok()) << context.status().message();
  std::vector<Tensor> result(context.gradients().size());
  if (!context.status().ok()) return result;
  std::vector<size_t> given;
  for (size_t i = 0; i < result.size(); ++i) {
    if (context.gradients()[i] == kNoValue) continue;
    graph.add_output(context.gradients()[i], fmt::format("dx{}", i));
    given.push_back(i);
  }
  const Status status = verify(graph);
  EXPECT_TRUE(status.ok()) << status.message() << "\n" << print(graph);
  Graph alive = graph;
  alive.compact();
  EXPECT_EQ(emitted(alive), emitted(graph)) << "some of it is thrown away\n" << print(graph);
  const std::vector<Tensor> outputs = interpret(graph, values);
  for (size_t i = 0; i < given.size(); ++i) result[given[i]] = outputs[i];
  return result;
}

void expect_equal(const Tensor& gradient, const std::vector<double>& expected, const TensorType& type) {
  if (gradient.valid()) {
    ASSERT_EQ(gradient.type().to_string(), type.to_string());
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const double x = gradient.valid() ? element_as_double(gradient, static_cast<int64_t>(i)) : 0;
    EXPECT_NEAR(x, expected[i], 1e-6 * std::max(1.0, std::fabs(expected[i]))) << "element " << i;
  }
}

void expect_gradients_of(const GradientCase& c) {
  const auto one = build(c);
  ASSERT_TRUE(one.ok()) << one.status().message();
  Graph forward = one->graph;
  for (ValueId v : forward.node(one->node).outputs) forward.add_output(v, forward.value(v).name);
  const TensorMap values = values_for(c, one->graph);
  std::vector<bool> wanted;
  for (ValueId v : forward.node(one->node).inputs)
    wanted.push_back(v != kNoValue && is_float(forward.type(v).dtype));
  const std::vector<Tensor> together = gradients_of(*one, wanted, values);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    SCOPED_TRACE(fmt::format("gradient of input {}", i));
    const std::string name = fmt::format("x{}", i);
    const std::vector<double> expected = difference_quotients(forward, values, name);
    const TensorType type = parse_type(c.inputs[i]);
    expect_equal(together[i], expected, type);
    std::vector<bool> alone(wanted.size(), false);
    alone[i] = true;
    expect_equal(gradients_of(*one, alone, values)[i], expected, type);
  }
}

}  // namespace

void expect_gradients(const std::vector<GradientCase>& cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(fmt::format("case {}: {} of {}", i, op_name(cases[i].op), cases[i].inputs[0]));
    expect_gradients_of(cases[i]);
  }
}

std::string gradient_refusal(const GradientCase& c) {
  auto one = build(c);
  EXPECT_TRUE(one.ok()) << one.status().message();
  if (!one.ok()) return "";
  GradientContext context(one->graph, one->node, one->dys, std::vector<bool>(c.inputs.size(), true));
  op_def(c.op).gradient(context);
  EXPECT_FALSE(context.status().ok());
  return context.status().message();
}

}  // namespace limber::testing
