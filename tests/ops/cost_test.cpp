#include <gtest/gtest.h>

#include "tests/ops/type_case.h"

namespace limber::testing {
namespace {

struct Cost {
  double flops, bytes;
};

Cost cost(OpKind op, const std::vector<std::string>& inputs, Attrs attrs, int num_outputs = 1) {
  Graph g;
  std::vector<ValueId> values;
  for (const std::string& input : inputs) {
    values.push_back(input == "_" ? kNoValue : g.add_input("x", parse_type(input)));
  }
  const auto node = emit_node(g, op, values, std::move(attrs), num_outputs);
  EXPECT_TRUE(node.ok()) << node.status().message();
  return node.ok() ? Cost{node_flops(g, *node), node_bytes(g, *node)} : Cost{-1, -1};
}

Attrs conv(Ints strides, Ints pads, int64_t groups = 1) {
  return {{"strides", strides}, {"pads", pads}, {"dilations", Ints(strides.size(), 1)}, {"groups", groups}};
}

TEST(Cost, ResNetStem) {
  const Cost c =
      cost(OpKind::kConv, {"f32[1,3,224,224]", "f32[64,3,7,7]", "f32[64]"}, conv({2, 2}, {3, 3, 3, 3}));
  EXPECT_EQ(c.flops, 2.0 * 64 * 3 * 49 * 112 * 112);
  EXPECT_EQ(c.bytes, 4.0 * (3 * 224 * 224 + 64 * 3 * 49 + 64 + 64 * 112 * 112));
}

TEST(Cost, Products) {
  EXPECT_EQ(cost(OpKind::kConv, {"f32[2,8,5,5]", "f32[8,1,3,3]"}, conv({1, 1}, {1, 1, 1, 1}, 8)).flops,
            2.0 * 2 * 8 * 9 * 25);
  EXPECT_EQ(cost(OpKind::kConvTranspose, {"f32[1,3,4]", "f32[3,2,5]"},
                 conv({2}, {0, 0}).set("output_padding", Ints{0}))
                .flops,
            2.0 * 3 * 4 * 2 * 5);
  EXPECT_EQ(cost(OpKind::kGemm, {"f32[4,2]", "f32[4,3]"}, {{"trans_a", num(1)}}).flops, 2.0 * 2 * 3 * 4);
  EXPECT_EQ(cost(OpKind::kMatMul, {"f32[5,2,3]", "f32[3,4]"}, {}).flops, 2.0 * 5 * 2 * 3 * 4);
  EXPECT_EQ(cost(OpKind::kMatMul, {"f32[3]", "f32[3]"}, {}).flops, 6.0);
  EXPECT_EQ(cost(OpKind::kEinsum, {"f32[5,2,3]", "f32[5,3,4]"}, {{"equation", text("bij,bjk->bik")}}).flops,
            2.0 * 5 * 2 * 3 * 4);
  EXPECT_EQ(
      cost(OpKind::kEinsum, {"f32[1,2,3]", "f32[5,3,4]"}, {{"equation", text("...ij,...jk->...ik")}}).flops,
      2.0 * 5 * 2 * 3 * 4);
  EXPECT_EQ(cost(OpKind::kAttention, {"f32[2,5,8]", "f32[2,7,8]", "f32[2,7,9]"}, {{"scale", 1.0}}).flops,
            2.0 * 2 * 5 * 7 * (8 + 9));
}

TEST(Cost, TheRest) {
  EXPECT_EQ(cost(OpKind::kAdd, {"f32[2,3]", "f32[3]"}, {}).flops, 6.0);
  EXPECT_EQ(cost(OpKind::kExp, {"f32[2,3]"}, {}).flops, 6.0);
  EXPECT_EQ(cost(OpKind::kReduceSum, {"f32[2,3]"}, {{"axes", Ints{1}}, {"keepdims", num(0)}}).flops, 6.0);
  EXPECT_EQ(cost(OpKind::kGlobalAveragePool, {"f32[1,2,3]"}, {}).flops, 6.0);
  EXPECT_EQ(cost(OpKind::kAveragePool, {"f32[1,1,8]"},
                 {{"kernel", Ints{2}}, {"strides", Ints{2}}, {"pads", Ints{0, 0}}})
                .flops,
            8.0);
  const Cost move = cost(OpKind::kTranspose, {"f32[2,3]"}, {{"perm", Ints{1, 0}}});
  EXPECT_EQ(move.flops, 0.0);
  EXPECT_EQ(move.bytes, 48.0);
  EXPECT_EQ(cost(OpKind::kTopK, {"f32[2,8]"}, {{"axis", num(1)}, {"k", num(2)}}, 2).bytes,
            4.0 * 16 + 4 * 4 + 8 * 4);
}

TEST(Cost, ReadsAValueOnce) {
  Graph g;
  const ValueId x = g.add_input("x", parse_type("f32[10]"));
  const auto node = emit_node(g, OpKind::kMul, {x, x}, {}, 1);
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node_bytes(g, *node), 80.0);
}

}  // namespace
}  // namespace limber::testing
