#include "ir/graph.h"

#include <gtest/gtest.h>

namespace limber {
namespace {

const TensorType kType{DType::kF32, {2, 3}};

ValueId relu(Graph& g, ValueId x, std::string_view name) {
  return g.add(OpKind::kRelu, {x}, {}, kType, name);
}

TEST(Graph, NamesAreMadeUnique) {
  Graph g;
  const ValueId a = g.add_input("x", kType), b = g.add_input("x", kType), c = g.add_input("", kType);
  EXPECT_EQ(g.value(a).name, "x");
  EXPECT_NE(g.value(b).name, "x");
  EXPECT_FALSE(g.value(c).name.empty());
  EXPECT_EQ(g.find("x"), a);
  EXPECT_EQ(g.find(g.value(b).name), b);
  EXPECT_EQ(g.find("y"), std::nullopt);
  EXPECT_TRUE(verify_structure(g).ok());
}

TEST(Graph, RenameFreesTheOldName) {
  Graph g;
  const ValueId a = g.add_input("x", kType), b = g.add_input("y", kType);
  g.rename(a, "z");
  EXPECT_EQ(g.find("x"), std::nullopt);
  g.rename(b, "x");
  EXPECT_EQ(g.find("x"), b);
  g.rename(a, "x");
  EXPECT_NE(g.value(a).name, "x");
  EXPECT_TRUE(verify_structure(g).ok());
}

TEST(Graph, ReadersListANodeOncePerUse) {
  Graph g;
  const ValueId x = g.add_input("x", kType);
  const NodeId twice = g.add_node(OpKind::kAdd, {x, x}, {}, {kType}, "twice");
  const NodeId once = g.add_node(OpKind::kConv, {x, g.node(twice).outputs[0], kNoValue}, {}, {kType}, "once");
  const auto readers = g.readers();
  EXPECT_EQ(readers[x.index], (std::vector<NodeId>{twice, twice, once}));
  EXPECT_EQ(readers[g.node(once).outputs[0].index].size(), 0u);
}

TEST(Graph, ReplaceUsesReachesNodesOutputsAndRows) {
  Graph g;
  const ValueId x = g.add_input("x", kType), y = g.add_input("y", kType);
  const ValueId a = g.add(OpKind::kAdd, {x, x}, {}, kType, "a");
  g.add_output(x, "o", x);
  g.replace_uses(x, y);
  EXPECT_EQ(g.node(g.value(a).producer).inputs, (std::vector<ValueId>{y, y}));
  EXPECT_EQ(g.outputs()[0].value, y);
  EXPECT_EQ(g.outputs()[0].rows, y);
  EXPECT_TRUE(g.is_output(y));
  EXPECT_FALSE(g.is_output(x));
}

TEST(Graph, CompactDropsWhatNobodyNeeds) {
  Graph g;
  const ValueId x = g.add_input("x", kType);
  g.add_input("unused", kType);
  g.add_parameter("dead_weight", kType);
  const ValueId w = g.add_parameter("w", kType);
  relu(g, x, "dead");
  const ValueId live = g.add(OpKind::kMul, {x, w}, {}, kType, "live");
  g.add_output(live, "y");
  g.compact();
  EXPECT_EQ(g.num_nodes(), 1u);
  EXPECT_EQ(g.inputs().size(), 2u);
  EXPECT_EQ(g.find("dead"), std::nullopt);
  EXPECT_EQ(g.find("dead_weight"), std::nullopt);
  EXPECT_TRUE(g.find("w").has_value());
  EXPECT_EQ(g.outputs()[0].value, *g.find("live"));
  EXPECT_TRUE(verify_structure(g).ok());
}

TEST(Graph, CompactKeepsNodesOfRowCounts) {
  Graph g;
  const ValueId x = g.add_input("x", kType);
  const ValueId rows = relu(g, x, "rows");
  g.add_output(x, "y", rows);
  g.compact();
  EXPECT_EQ(g.num_nodes(), 1u);
  EXPECT_EQ(g.outputs()[0].rows, *g.find("rows"));
}

TEST(Graph, CompactKeepsWhatAnUpdateWritesTo) {
  Graph g;
  g.add_parameter("dead_weight", kType);
  const ValueId w = g.add_parameter("w", kType), x = g.add_input("x", kType);
  g.add_update(w, relu(g, x, "new_w"));
  g.compact();
  EXPECT_EQ(g.find("dead_weight"), std::nullopt);
  ASSERT_TRUE(g.find("w").has_value());
  EXPECT_EQ(g.outputs()[0].name, "w");
  EXPECT_EQ(g.outputs()[0].into, *g.find("w"));
  EXPECT_EQ(g.outputs()[0].value, *g.find("new_w"));
  EXPECT_EQ(g.updated(), (std::vector<bool>{true, false, false}));
  EXPECT_TRUE(verify_structure(g).ok());
}

TEST(Graph, OptionalOutputsMayComeLater) {
  Graph g;
  const ValueId x = g.add_input("x", kType);
  const NodeId n = g.add_node(OpKind::kLayerNorm, {x}, {}, {kType}, "norm");
  const ValueId inv_std = g.add_optional_output(n, 2, kType, "inv_std");
  EXPECT_EQ(g.node(n).outputs.size(), 3u);
  EXPECT_EQ(g.node(n).outputs[1], kNoValue);
  EXPECT_EQ(g.node(n).outputs[2], inv_std);
  const ValueId mean = g.add_optional_output(n, 1, kType);
  EXPECT_EQ(g.node(n).outputs[1], mean);
  EXPECT_TRUE(verify_structure(g).ok());
}

TEST(Graph, CompactKeepsTheOrderPeopleWrote) {
  Graph g;
  const ValueId x = g.add_input("x", kType);
  const ValueId a = relu(g, x, "a"), b = relu(g, x, "b");
  g.add_output(g.add(OpKind::kAdd, {b, a}, {}, kType, "sum"), "y");
  const std::string before = print(g);
  g.compact();
  EXPECT_EQ(print(g), before);
}

TEST(Graph, CompactRestoresTopologicalOrder) {
  Graph g;
  const ValueId x = g.add_input("x", kType);
  const ValueId a = relu(g, x, "a");
  const ValueId b = relu(g, a, "b");
  const ValueId late = relu(g, x, "late");
  g.add_output(b, "y");
  g.mutable_node(g.value(a).producer).inputs[0] = late;
  EXPECT_FALSE(verify_structure(g).ok());
  g.compact();
  EXPECT_TRUE(verify_structure(g).ok());
  EXPECT_EQ(g.nodes()[0].name, "late");
  EXPECT_EQ(g.num_nodes(), 3u);
}

TEST(Graph, CompactKeepsUnwantedOutputs) {
  Graph g;
  const ValueId x = g.add_input("x", kType);
  const NodeId n = g.add_node(OpKind::kTopK, {x}, {}, {kType, kType}, "k");
  const ValueId indices = g.node(n).outputs[1];
  g.add_output(indices, "i");
  g.compact();
  EXPECT_EQ(g.nodes()[0].outputs.size(), 2u);
  EXPECT_TRUE(verify_structure(g).ok());
}

TEST(Graph, DeepGraphsCompactWithoutRecursion) {
  Graph g;
  ValueId v = g.add_input("x", kType);
  for (int i = 0; i < 100000; ++i) v = relu(g, v, "r");
  g.add_output(v, "y");
  g.compact();
  EXPECT_EQ(g.num_nodes(), 100000u);
}

TEST(VerifyStructure, NamesWhatIsWrong) {
  Graph g;
  const ValueId x = g.add_input("x", kType);
  const ValueId y = relu(g, x, "y");
  g.add_output(y, "y");
  const auto message = [](const Graph& graph) { return verify_structure(graph).message(); };
  EXPECT_EQ(message(g), "");
  {
    Graph bad = g;
    bad.mutable_node(NodeId{0}).inputs[0] = ValueId{99};
    EXPECT_EQ(message(bad), "node 0 'y' (Relu): reads a value that does not exist");
  }
  {
    Graph bad = g;
    bad.mutable_node(NodeId{0}).inputs[0] = y;
    EXPECT_EQ(message(bad), "node 0 'y' (Relu): reads 'y' before it is produced");
  }
  {
    Graph bad = g;
    bad.add_output(x, "y");
    EXPECT_EQ(message(bad), "output 'y' is listed twice");
  }
  {
    Graph bad = g;
    bad.mutable_value(y).role = Role::kParameter;
    EXPECT_EQ(message(bad), "value 'y': only activations have a producer");
  }
  {
    Graph bad = g;
    bad.mutable_value(bad.add_constant("c", Tensor::scalar(1.0f))).type = kType;
    EXPECT_EQ(message(bad), "constant 'c': its bytes do not match its type f32[2,3]");
  }
}

TEST(VerifyStructure, ChecksUpdates) {
  Graph g;
  const ValueId x = g.add_input("x", kType), w = g.add_parameter("w", kType),
                other = g.add_parameter("other", {DType::kF32, {3}}, Role::kState);
  g.add_update(w, x);
  const auto message_with = [&](ValueId into) {
    Graph bad = g;
    bad.add_output(x, "y");
    bad.mutable_outputs().back().into = into;
    return verify_structure(bad).message();
  };
  EXPECT_EQ(message_with(kNoValue), "");
  EXPECT_EQ(message_with(ValueId{99}), "output 'y': what it updates does not exist");
  EXPECT_EQ(message_with(x), "output 'y' updates 'x', which is neither a parameter nor state");
  EXPECT_EQ(message_with(other), "output 'y' has type f32[2,3], 'other' has f32[3]");
  EXPECT_EQ(message_with(w), "'w' is updated twice");
}

TEST(OpKind, NamesRoundTrip) {
  for (int i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<OpKind>(i);
    EXPECT_EQ(parse_op(op_name(op)), op);
  }
  EXPECT_EQ(parse_op("NoSuchOperator"), std::nullopt);
}

TEST(Attrs, AreSortedAndTyped) {
  Attrs attrs{{"b", int64_t{2}}, {"a", 1.5}};
  attrs.set("c", std::string("s")).set("a", 2.5);
  EXPECT_EQ(attrs.entries()[0].first, "a");
  EXPECT_EQ(attrs.f("a"), 2.5);
  EXPECT_EQ(attrs.i("b"), 2);
  EXPECT_EQ(attrs.i("missing", 7), 7);
  EXPECT_EQ(attrs.s("missing", "x"), "x");
  attrs.erase("b");
  EXPECT_FALSE(attrs.has("b"));
  EXPECT_EQ(attrs, (Attrs{{"c", std::string("s")}, {"a", 2.5}}));
}

}  // namespace
}  // namespace limber
