// Matrix products: Gemm, MatMul, Einsum, Attention.
#include <gtest/gtest.h>

#include "ops/einsum.h"
#include "tests/ops/type_case.h"

namespace limber::testing {
namespace {

constexpr OpKind kGemm = OpKind::kGemm, kMatMul = OpKind::kMatMul, kEinsum = OpKind::kEinsum,
                 kAttention = OpKind::kAttention;

Attrs trans(bool a, bool b) { return {{"trans_a", num(a)}, {"trans_b", num(b)}}; }
Attrs equation(std::string_view text) { return {{"equation", std::string(text)}}; }

TEST(ProductTypes, GemmAndMatMul) {
  expect_types({
      {kGemm, {"f32[N,512]", "f32[1000,512]", "f32[1000]"}, trans(false, true), {"f32[N,1000]"}},
      {kGemm, {"f32[4,2]", "f32[4,3]", "f32[]"}, trans(true, false), {"f32[2,3]"}},
      {kGemm, {"f32[2,0]", "f32[0,3]"}, {}, {"f32[2,3]"}},
      {kMatMul, {"f32[3]", "f32[3]"}, {}, {"f32[]"}},
      {kMatMul, {"f32[3]", "f32[3,4]"}, {}, {"f32[4]"}},
      {kMatMul, {"f32[2,3]", "f32[3]"}, {}, {"f32[2]"}},
      {kMatMul, {"f32[5,2,3]", "f32[3]"}, {}, {"f32[5,2]"}},
      {kMatMul, {"f32[N,12,197,64]", "f32[N,12,197,64]"}, trans(false, true), {"f32[N,12,197,197]"}},
      {kMatMul, {"f32[N,197,192]", "f32[192,576]", "f32[576]"}, {}, {"f32[N,197,576]"}},
      {kMatMul, {"i32[1,7,2,3]", "i32[5,1,3,4]"}, {}, {"i32[5,7,2,4]"}},
      {kMatMul, {"f32[2,3]", "f32[3,4]", "_", "f32[2,4]"}, {{"act", text("gelu")}}, {"f32[2,4]"}},
      {kMatMul, {"f32[N,K]", "f32[4,5]"}, {}, {"f32[N,5]"}},
  });
  expect_failures({
      {kGemm, {"f32[2,3]", "f32[4,5]"}, {}, "cannot multiply over 3 and 4 elements"},
      {kGemm, {"f32[2,3,4]", "f32[4,5]"}, {}, "a has type f32[2,3,4], expected rank 2"},
      {kGemm,
       {"f32[2,3]", "f32[3,5]", "f32[3,5]"},
       {},
       "c has type f32[3,5], which does not broadcast to [2,5]"},
      {kGemm, {"f32[2,3]", "f32[3,5]"}, {{"trans_a", num(2)}}, "'trans_a' is 2"},
      {kMatMul, {"f32[2,3]", "f32[4]"}, {}, "cannot multiply over 3 and 4 elements"},
      {kMatMul, {"f32[]", "f32[4]"}, {}, "expected rank 1 to 8"},
      {kMatMul, {"f32[3]", "f32[3]"}, trans(true, false), "cannot be transposed"},
      {kMatMul, {"f32[2,2,3]", "f32[3,3,4]"}, {}, "do not broadcast"},
      {kMatMul, {"f32[2,3]", "f32[3,4]", "f32[5]"}, {}, "bias has type f32[5]"},
      {kMatMul, {"f32[2,3]", "f32[3,4]", "_", "f32[4]"}, {}, "residual has type f32[4]"},
      {kMatMul, {"f32[2,3]", "i32[3,4]"}, {}, "expected the dtype of input 0"},
      {kMatMul, {"f32[1099511627776,1]", "f32[1,2]"}, {}, "more than 2^40 elements"},
  });
}

TEST(ProductTypes, Attention) {
  const Attrs scale = {{"scale", 0.125}};
  expect_types({
      {kAttention, {"f32[N,3,197,64]", "f32[N,3,197,64]", "f32[N,3,197,64]"}, scale, {"f32[N,3,197,64]"}},
      {kAttention, {"f32[5,8]", "f32[7,8]", "f32[7,9]", "f32[7]"}, scale, {"f32[5,9]"}},
  });
  expect_failures({
      {kAttention, {"f32[5,8]", "f32[7,6]", "f32[7,9]"}, scale, "k has type f32[7,6]"},
      {kAttention, {"f32[5,8]", "f32[7,8]", "f32[6,9]"}, scale, "v has type f32[6,9]"},
      {kAttention, {"f32[5,8]", "f32[2,7,8]", "f32[7,9]"}, scale, "k has type f32[2,7,8], expected rank 2"},
      {kAttention, {"f32[5,8]", "f32[7,8]", "f32[7,9]", "f32[5,8]"}, scale, "mask has type"},
      {kAttention, {"f32[8]", "f32[8]", "f32[8]"}, scale, "expected rank 2"},
  });
}

TEST(ProductTypes, Einsum) {
  expect_types({
      {kEinsum, {"f32[N,2,3]", "f32[N,3,4]"}, equation("bij, bjk -> bik"), {"f32[N,2,4]"}},
      {kEinsum, {"f32[2,3]", "f32[3,4]"}, equation("ij,jk"), {"f32[2,4]"}},
      {kEinsum, {"f32[2,3]"}, equation("ji"), {"f32[3,2]"}},
      {kEinsum, {"f32[3,3]"}, equation("ii->i"), {"f32[3]"}},
      {kEinsum, {"f32[3,3]"}, equation("ii"), {"f32[]"}},
      {kEinsum, {"f32[2,3]"}, equation("ij->"), {"f32[]"}},
      {kEinsum, {"f32[5,3,3]"}, equation("...ii->...i"), {"f32[5,3]"}},
      {kEinsum, {"f32[N,1,2,3]", "f32[7,3,4]"}, equation("...ij,...jk->...ik"), {"f32[N,7,2,4]"}},
      {kEinsum, {"f32[5,2]", "f32[2,4]", "f32[4]"}, equation("ab,bc,c->a"), {"f32[5]"}},
      {kEinsum, {"f32[]"}, equation("->"), {"f32[]"}},
  });
  expect_failures({
      {kEinsum, {"f32[2,3]"}, equation("ij,jk->ik"), "has 2 terms for 1 inputs"},
      {kEinsum, {"f32[2,3]"}, equation("ijk->i"), "does not fit an input of rank 2"},
      {kEinsum, {"f32[2,3]"}, equation("i->i"), "does not fit an input of rank 2"},
      {kEinsum, {"f32[2,3]"}, equation("i1->i"), "something else than letters"},
      {kEinsum, {"f32[2,3]"}, equation("......ij->ij"), "something else than letters"},
      {kEinsum, {"f32[2,3]"}, equation("ij->ii"), "has 'i' twice"},
      {kEinsum, {"f32[2,3]"}, equation("ij->k"), "has 'k', which no input has"},
      {kEinsum, {"f32[2,3]"}, equation("ij->i->j"), "something else than letters"},
      {kEinsum, {"f32[2,3]"}, equation("...j->j"), "lacks the '...'"},
      {kEinsum, {"f32[2,3]"}, equation("ii->i"), "axis 'i' has size 2 and size 3"},
      {kEinsum, {"f32[2,3]", "_"}, equation("ij,ij->i"), "input 1 is missing"},
      {kEinsum, {"bool[2]"}, equation("i->i"), "expected a numeric type"},
      {kEinsum, {"f32[2]"}, equation(std::string(10000, 'a')), "does not fit"},
      {kEinsum, {}, equation(""), "0 inputs, expected at least 1"},
      {kEinsum,
       {"f32[2,2,2]", "f32[2,2,2]", "f32[2,2,2]"},
       equation("abc,def,ghi->abcdefghi"),
       "expected at most 8"},
  });
}

TEST(ProductTypes, EinsumAxesAlignOnTheRight) {
  const int ranks[] = {4, 3};
  const auto axes = parse_einsum("...ij,...jk->...ik", ranks);
  ASSERT_TRUE(axes.ok());
  EXPECT_EQ(axes->inputs, (std::vector<std::string>{"01ij", "1jk"}));
  EXPECT_EQ(axes->output, "01ik");
}

}  // namespace
}  // namespace limber::testing
