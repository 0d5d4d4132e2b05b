#include <gtest/gtest.h>

#include "tests/ops/type_case.h"

namespace limber::testing {
namespace {

ValueId must(Result<ValueId> result) {
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : kNoValue;
}

// conv -> flatten, and the shape of the convolution as a second output.
Graph small_graph() {
  Graph g;
  const ValueId x = g.add_input("x", parse_type("f32[N,3,8,8]"));
  const ValueId w = g.add_parameter("w", parse_type("f32[4,3,3,3]"));
  const Attrs conv = {{"strides", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}, {"dilations", Ints{1, 1}}};
  const ValueId y = must(emit(g, OpKind::kConv, {x, w}, conv, "conv"));
  const ValueId shape = must(emit(g, OpKind::kShapeOf, {y}, {}, "shape"));
  const ValueId flat = must(emit(g, OpKind::kReshape, {y}, {{"shape", dims("N,256")}}, "flat"));
  g.add_output(flat, "flat");
  g.add_output(must(emit(g, OpKind::kIdentity, {shape}, {}, "id")), "shape");
  return g;
}

TEST(Bind, ReplacesSymbolsAndFoldsShapes) {
  const Graph g = small_graph();
  ASSERT_TRUE(verify(g).ok()) << verify(g).message();
  EXPECT_EQ(symbols(g), std::vector<std::string>{"N"});

  const auto bound = bind(g, {{"N", 5}, {"unrelated", 2}});
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  ASSERT_TRUE(verify(*bound).ok()) << verify(*bound).message();
  EXPECT_TRUE(symbols(*bound).empty());
  EXPECT_EQ(bound->type(*bound->find("x")).to_string(), "f32[5,3,8,8]");
  EXPECT_EQ(bound->type(*bound->find("conv")).to_string(), "f32[5,4,8,8]");
  EXPECT_EQ(bound->type(*bound->find("flat")).to_string(), "f32[5,256]");
  EXPECT_EQ(bound->num_nodes(), 3u);
  const Value& shape = bound->value(*bound->find("shape"));
  ASSERT_EQ(shape.role, Role::kConstant);
  const auto values = shape.constant.data<int64_t>();
  EXPECT_EQ(Ints(values.begin(), values.end()), (Ints{5, 4, 8, 8}));
  EXPECT_EQ(g.type(*g.find("conv")).to_string(), "f32[N,4,8,8]");
}

TEST(Bind, KeepsIdsWhenThereIsNothingToFold) {
  Graph g;
  const ValueId x = g.add_input("x", parse_type("f32[N,3]"));
  g.add_constant("unused", Tensor::scalar(1.0f));
  const ValueId y = must(emit(g, OpKind::kRelu, {x}, {}, "y"));
  g.add_output(y, "y");
  const auto bound = bind(g, {{"N", 2}});
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(bound->num_values(), g.num_values());
  EXPECT_EQ(bound->type(y).to_string(), "f32[2,3]");
}

TEST(Bind, NamesWhatIsMissingAndTheRemedy) {
  Graph g;
  const ValueId x = g.add_input("x", parse_type("f32[batch,H,3]"));
  g.add_output(must(emit(g, OpKind::kRelu, {x})), "y");
  EXPECT_EQ(symbols(g), (std::vector<std::string>{"batch", "H"}));
  const Status status = bind(g, {}).status();
  EXPECT_NE(status.message().find("'batch', 'H'"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("batch=1, H=1"), std::string::npos) << status.message();
  EXPECT_EQ(bind(g, {{"batch", 2}}).status().message(),
            "no number for the symbolic dimension 'H'; give every symbol one, for instance H=1");
}

TEST(Bind, RejectsHostileNumbers) {
  const Graph g = small_graph();
  for (int64_t n : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    EXPECT_NE(bind(g, {{"N", n}}).status().message().find("at least 1"), std::string::npos) << n;
  }
  EXPECT_NE(bind(g, {{"N", INT64_MAX}}).status().message().find("more than 2^40"), std::string::npos);

  Graph scaled;
  scaled.add_input("x", parse_type("f32[4N]"));
  EXPECT_NE(bind(scaled, {{"N", INT64_MAX}}).status().message().find("overflows"), std::string::npos);
  Graph shrunk;
  shrunk.add_input("x", parse_type("f32[N-4]"));
  EXPECT_NE(bind(shrunk, {{"N", 3}}).status().message().find("negative dimension"), std::string::npos);
}

TEST(Bind, FindsMismatchesThatSymbolsHid) {
  Graph g;
  const ValueId x = g.add_input("x", parse_type("f32[N,3]"));
  g.add_output(must(emit(g, OpKind::kReshape, {x}, {{"shape", dims("6")}}, "six")), "y");
  EXPECT_TRUE(bind(g, {{"N", 2}}).ok());
  const Status status = bind(g, {{"N", 3}}).status();
  EXPECT_NE(status.message().find("node 'six': Reshape: "), std::string::npos) << status.message();
}

TEST(Bind, MatchesSymbolsAsTheyAreStored) {
  Graph g;
  g.add_input("x", {DType::kF32, {Dim(Symbol("a rather long batch name"))}});
  EXPECT_TRUE(bind(g, {{"a rather long batch name", 2}}).ok());
}

TEST(Verify, FindsWrongTypes) {
  Graph g = small_graph();
  g.mutable_value(*g.find("conv")).type = parse_type("f32[N,4,9,8]");
  const Status status = verify(g);
  EXPECT_NE(
      status.message().find("node 0 'conv': Conv: output 0 'conv' has type f32[N,4,9,8], its rule gives "
                            "f32[N,4,8,8]"),
      std::string::npos)
      << status.message();
}

TEST(Verify, FindsWrongRowCounts) {
  Graph g;
  const ValueId x = g.add_input("x", parse_type("f32[4]"));
  g.add_output(x, "x", x);
  EXPECT_NE(verify(g).message().find("expected i64[]"), std::string::npos);
}

TEST(Verify, ChecksValuesNobodyReads) {
  Graph g;
  g.add_input("huge", parse_type("f32[1099511627777]"));
  EXPECT_NE(verify(g).message().find("value 'huge'"), std::string::npos);
}

TEST(Emit, FailuresNameNodeAndOperatorAndChangeNothing) {
  Graph g;
  const ValueId x = g.add_input("x", parse_type("i32[4]"));
  const auto y = emit(g, OpKind::kSqrt, {x}, {}, "root");
  ASSERT_FALSE(y.ok());
  EXPECT_EQ(y.status().message(), "node 'root': Sqrt: x has type i32[4], expected a floating-point type");
  EXPECT_EQ(g.num_nodes(), 0u);
  EXPECT_NE(emit(g, OpKind::kRelu, {ValueId{99}}).status().message().find("does not exist"),
            std::string::npos);
}

TEST(Emit, OutputsNobodyWantsMayBeDropped) {
  Graph g;
  const ValueId x = g.add_input("x", parse_type("f32[N,10]"));
  const auto node = emit_node(g, OpKind::kTopK, {x}, {{"axis", num(1)}, {"k", num(3)}}, 2, "top");
  ASSERT_TRUE(node.ok());
  g.add_output(g.node(*node).outputs[1], "indices");
  EXPECT_TRUE(verify(g).ok());
  const ValueId values = g.node(*node).outputs[0];
  g.mutable_node(*node).outputs[0] = kNoValue;
  g.mutable_value(values).producer = kNoNode;
  g.mutable_value(values).role = Role::kParameter;
  EXPECT_TRUE(verify(g).ok()) << verify(g).message();
  EXPECT_TRUE(bind(g, {{"N", 2}}).ok());
}

}  // namespace
}  // namespace limber::testing
