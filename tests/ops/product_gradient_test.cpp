#include <gtest/gtest.h>

#include "ops/gradient.h"
#include "tests/ops/gradient_case.h"

namespace limber::testing {
namespace {

Attrs flags(int64_t trans_a, int64_t trans_b) { return {{"trans_a", trans_a}, {"trans_b", trans_b}}; }

void add_gemm_cases(std::vector<GradientCase>& cases) {
  cases.push_back({OpKind::kGemm, {"f64[2,3]", "f64[3,4]", "f64[4]"}});
  cases.push_back({OpKind::kGemm, {"f64[3,2]", "f64[3,4]", "f64[2,1]"}, flags(1, 0).set("beta", 0.5)});
  cases.push_back({OpKind::kGemm, {"f64[2,3]", "f64[4,3]", "f64[2,4]"}, flags(0, 1).set("alpha", 1.5)});
  cases.push_back(
      {OpKind::kGemm, {"f64[3,2]", "f64[4,3]", "f64[]"}, flags(1, 1).set("alpha", -0.5).set("beta", 2.0)});
  cases.push_back({OpKind::kGemm, {"f64[3,2]", "f64[2,3]"}});
}

void add_matmul_cases(std::vector<GradientCase>& cases) {
  constexpr OpKind kOp = OpKind::kMatMul;
  for (int64_t a : {0, 1}) {
    for (int64_t b : {0, 1}) {
      const std::string right = b == 1 ? "4,3]" : "3,4]", left = a == 1 ? "3,2]" : "2,3]";
      cases.push_back({kOp, {"f64[" + left, "f64[" + right}, flags(a, b)});
      cases.push_back({kOp, {"f64[2,2," + left, "f64[" + right, "f64[4]"}, flags(a, b).set("alpha", 0.7)});
      cases.push_back({kOp, {"f64[3," + left, "f64[2,1," + right}, flags(a, b)});
      cases.push_back({kOp, {"f64[" + left, "f64[3," + right}, flags(a, b)});
      cases.push_back({kOp, {"f64[2," + left, "f64[1,1," + right}, flags(a, b)});
    }
  }
  cases.push_back({kOp, {"f64[3]", "f64[3]"}, {{"alpha", 2.0}}});
  cases.push_back({kOp, {"f64[3]", "f64[2,3,4]"}});
  cases.push_back({kOp, {"f64[2,4,3]", "f64[3]"}});
  cases.push_back({kOp, {"f64[2,3]", "f64[3]", "f64[]", "f64[2]"}});
  cases.push_back({kOp, {"f64[2,2,3]", "f64[3,2]", "f64[2]", "f64[2,2,2]"}, {{"act", text("tanh")}}});
}

void add_einsum_cases(std::vector<GradientCase>& cases) {
  const auto add = [&](const char* equation, std::vector<std::string> inputs) {
    cases.push_back({OpKind::kEinsum, std::move(inputs), {{"equation", text(equation)}}});
  };
  add("ij,jk->ik", {"f64[2,3]", "f64[3,2]"});
  add("bij,bkj->bik", {"f64[2,2,3]", "f64[2,4,3]"});
  add("ij->", {"f64[2,3]"});
  add("ij->i", {"f64[2,3]"});
  add("ij->ji", {"f64[2,3]"});
  add("i,j->ij", {"f64[2]", "f64[3]"});
  add("ij,ik,il->jkl", {"f64[2,3]", "f64[2,2]", "f64[2,2]"});
  add("ij,kl->j", {"f64[2,3]", "f64[2,2]"});
  add("...ij,...jk->...ik", {"f64[2,1,2,3]", "f64[4,3,2]"});
  add("a...,b->...b", {"f64[2,3]", "f64[2]"});
  add("ij,jk", {"f64[2,3]", "f64[3,2]"});
}

void add_attention_cases(std::vector<GradientCase>& cases) {
  const Attrs scale{{"scale", 0.6}};
  cases.push_back({OpKind::kAttention, {"f64[2,3]", "f64[4,3]", "f64[4,2]"}, scale});
  cases.push_back({OpKind::kAttention, {"f64[2,2,3]", "f64[2,3,3]", "f64[2,3,2]", "f64[2,3]"}, scale});
  cases.push_back(
      {OpKind::kAttention, {"f64[1,2,2,2]", "f64[1,2,3,2]", "f64[1,2,3,3]", "f64[1,1,1,3]"}, scale});
}

}  // namespace

std::vector<GradientCase> product_gradient_cases() {
  std::vector<GradientCase> cases;
  add_gemm_cases(cases);
  add_matmul_cases(cases);
  add_einsum_cases(cases);
  add_attention_cases(cases);
  return cases;
}

TEST(ProductGradients, MatchDifferences) { expect_gradients(product_gradient_cases()); }

TEST(ProductGradients, OfOneMatrixAreOneProduct) {
  Graph graph;
  const ValueId a = graph.add_input("a", parse_type("f32[8,16,3]")),
                w = graph.add_input("w", parse_type("f32[3,5]")),
                dy = graph.add_input("dy", parse_type("f32[8,16,5]"));
  const auto node = emit_node(graph, OpKind::kMatMul, {a, w}, {}, 1, "fc");
  ASSERT_TRUE(node.ok());
  GradientContext context(graph, *node, {dy}, {false, true});
  op_def(OpKind::kMatMul).gradient(context);
  ASSERT_TRUE(context.status().ok());
  const Node& last = graph.nodes().back();
  EXPECT_EQ(last.op, OpKind::kMatMul);
  EXPECT_EQ(graph.type(last.inputs[0]).to_string(), "f32[128,3]");
  EXPECT_EQ(graph.type(last.inputs[1]).to_string(), "f32[128,5]");
}

TEST(ProductGradients, OfADiagonalAreRefused) {
  const std::string message =
      gradient_refusal({OpKind::kEinsum, {"f64[3,3]"}, {{"equation", text("ii->i")}}});
  EXPECT_NE(message.find("diagonal"), std::string::npos) << message;
}

}  // namespace limber::testing
