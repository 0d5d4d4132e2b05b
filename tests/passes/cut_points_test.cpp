#include "passes/cut_points.h"

#include <algorithm>

#include "tests/passes/golden.h"
#include "tests/passes/interpret.h"

namespace limber {
namespace {

std::vector<std::string> cut_names(const Graph& graph) {
  std::vector<std::string> names;
  for (ValueId v : cut_points(graph)) names.push_back(graph.value(v).name);
  return names;
}

using Names = std::vector<std::string>;

TEST(CutPoints, ABranchHidesWhatLiesInsideIt) {
  const Graph graph = graph_of(R"(
    input %x: f32[N,4]
    %a: f32[N,4] = Relu(%x)
    %b: f32[N,4] = Neg(%a)
    %c: f32[N,4] = Abs(%b)
    %d: f32[N,4] = Add(%c, %a)
    %e: f32[N,4] = Exp(%d)
    output %e)");
  EXPECT_EQ(cut_names(graph), (Names{"x", "a", "d", "e"}));
}

TEST(CutPoints, WhatParametersGiveIsNoPath) {
  const Graph graph = graph_of(R"(
    input %x: f32[N,4]
    param %w: f32[4,4]
    const %two: f32[] = {2}
    %w2: f32[4,4] = Mul(%w, %two)
    %a: f32[N,4] = MatMul(%x, %w2)
    %w3: f32[4,4] = Neg(%w2)
    %b: f32[N,4] = MatMul(%a, %w3)
    output %b)");
  EXPECT_EQ(cut_names(graph), (Names{"x", "a", "b"}));
}

TEST(CutPoints, SeveralInputsMeetFirst) {
  const Graph graph = graph_of(R"(
    input %x: f32[4]
    input %y: f32[4]
    input %unused: f32[4]
    %a: f32[4] = Relu(%x)
    %b: f32[4] = Add(%a, %y)
    %c: f32[4] = Neg(%b)
    output %c)");
  EXPECT_EQ(cut_names(graph), (Names{"b", "c"}));
}

TEST(CutPoints, OnlyPathsToTheFirstOutputCount) {
  const Graph graph = graph_of(R"(
    input %x: f32[4]
    %a: f32[4] = Relu(%x)
    %side: f32[4] = Exp(%x)
    %b: f32[4] = Neg(%a)
    output %b
    output %side)");
  EXPECT_EQ(cut_names(graph), (Names{"x", "a", "b"}));
}

TEST(CutPoints, BothOutputsOfANodeAreNone) {
  const Graph graph = graph_of(R"(
    input %x: f32[4]
    %a: f32[2], %b: f32[2] = Split(%x) {axis=0, sizes=[2,2]}
    %c: f32[2] = Add(%a, %b)
    output %c)");
  EXPECT_EQ(cut_names(graph), (Names{"x", "c"}));
}

TEST(CutPoints, AKnownShapeIsNoPath) {
  const auto text = [](std::string_view n) {
    return fmt::format(R"(
    input %x: f32[{0},4]
    %s: i64[2] = ShapeOf(%x)
    %f: f32[2] = Cast(%s) {{to="f32"}}
    %m: f32[] = ReduceMax(%f) {{axes=[0], keepdims=0}}
    %a: f32[{0},4] = Relu(%x)
    %b: f32[{0},4] = Mul(%a, %m)
    output %b)",
                       n);
  };
  const Graph known = graph_of(text("3"));
  EXPECT_EQ(cut_names(known), (Names{"x", "a", "b"}));
  EXPECT_EQ(cut_names(graph_of(text("N"))), (Names{"x", "b"}));
  const auto block = extract(known, *known.find("a"), *known.find("b"));
  ASSERT_TRUE(block.ok()) << block.status().message();
  EXPECT_EQ(count_ops(*block, OpKind::kShapeOf), 0);
  const TensorMap stored = random_tensors(known, 1);
  const Tensor expected = interpret(known, stored)[0];
  Tensor relu = *stored.at("x").copy();
  for (float& v : relu.data<float>()) v = std::max(v, 0.0f);
  const Tensor found = interpret(*block, {{"a", relu}})[0];
  EXPECT_EQ(std::memcmp(found.raw(), expected.raw(), expected.bytes()), 0);
}

TEST(CutPoints, AGraphOfNoInputHasNone) {
  EXPECT_TRUE(cut_points(graph_of("param %w: f32[4]\n%a: f32[4] = Relu(%w)\noutput %a")).empty());
  EXPECT_TRUE(cut_points(Graph()).empty());
}

Graph random_dag(uint64_t seed) {
  Random random(seed);
  Graph graph;
  const TensorType type{DType::kF32, Shape{2}};
  std::vector<ValueId> values;
  for (uint64_t i = 0; i <= random.below(2); ++i) values.push_back(graph.add_input("x", type));
  values.push_back(graph.add_parameter("p", type));
  const uint64_t nodes = 2 + random.below(14);
  for (uint64_t n = 0; n < nodes; ++n) {
    // Mostly the newest values, so that there are cut points to be found.
    const auto any = [&] {
      const size_t reach = std::min<size_t>(values.size(), random.below(4) == 0 ? values.size() : 2);
      return values[values.size() - 1 - random.below(reach)];
    };
    if (random.below(2) == 0) {
      values.push_back(*emit(graph, OpKind::kRelu, {any()}, {}, "t"));
    } else {
      values.push_back(*emit(graph, OpKind::kAdd, {any(), any()}, {}, "t"));
    }
  }
  graph.add_output(values.back(), "y");
  return graph;
}

// Is there a path from an input to the output that does not touch `removed`?
bool reaches_without(const Graph& graph, ValueId removed) {
  std::vector<bool> reached(graph.num_values(), false);
  for (ValueId v : graph.inputs()) reached[v.index] = v != removed;
  for (const Node& node : graph.nodes()) {
    const bool any =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return reached[v.index]; });
    for (ValueId v : node.outputs) reached[v.index] = any && v != removed;
  }
  return reached[graph.outputs()[0].value.index];
}

TEST(CutPoints, AreWhatNoPathCanAvoid) {
  size_t found = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Graph graph = random_dag(seed);
    std::vector<ValueId> expected;
    for (ValueId v : graph.inputs()) {
      if (reaches_without(graph, kNoValue) && !reaches_without(graph, v)) expected.push_back(v);
    }
    for (const Node& node : graph.nodes()) {
      if (reaches_without(graph, kNoValue) && !reaches_without(graph, node.outputs[0]))
        expected.push_back(node.outputs[0]);
    }
    ASSERT_EQ(cut_points(graph), expected) << print(graph);
    found += expected.size();
  }
  EXPECT_GT(found, 4000u);
}

constexpr std::string_view kChain = R"(
  input %x: f32[N,4]
  param %w: f32[4,4]
  param %v: f32[4,3]
  const %two: f32[] = {2}
  %a: f32[N,4] = MatMul(%x, %w)
  %b: f32[N,4] = Mul(%a, %two)
  %c: f32[N,3] = MatMul(%b, %v)
  %d: f32[N,3] = Relu(%c)
  output %d as "y")";

TEST(Extract, KeepsNamesAndSharesConstants) {
  const Graph graph = graph_of(kChain);
  const auto block = extract(graph, *graph.find("a"), *graph.find("c"));
  ASSERT_TRUE(block.ok()) << block.status().message();
  EXPECT_EQ(print(*block), print(graph_of(R"(
    input %a: f32[N,4]
    param %v: f32[4,3]
    const %two: f32[] = {2}
    %b: f32[N,4] = Mul(%a, %two)
    %c: f32[N,3] = MatMul(%b, %v)
    output %c)")));
  EXPECT_EQ(block->value(*block->find("two")).constant.buffer(),
            graph.value(*graph.find("two")).constant.buffer());
}

TEST(Extract, SaysWhatIsWrong) {
  const Graph graph = graph_of(kChain);
  const ValueId a = *graph.find("a"), c = *graph.find("c");
  EXPECT_EQ(extract(graph, c, a).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(extract(graph, c, a).status().message(), "'a' does not depend on 'c'");
  EXPECT_EQ(extract(graph, a, a).status().message(), "nothing lies between 'a' and itself");
  EXPECT_EQ(extract(graph, a, kNoValue).status().code(), Code::kInvalidArgument);
  const Graph branch = graph_of(R"(
    input %x: f32[4]
    %a: f32[4] = Relu(%x)
    %b: f32[4] = Add(%a, %x)
    output %b)");
  EXPECT_EQ(extract(branch, *branch.find("a"), *branch.find("b")).status().message(),
            "'b' depends on 'x' not only through 'a', which is no cut point before it");
}

}  // namespace
}  // namespace limber
