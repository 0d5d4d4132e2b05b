#include "tests/passes/golden.h"

namespace limber {
namespace {

TEST(GemmToMatmul, KeepsFlagsAndBias) {
  expect_rewrite(
      gemm_to_matmul,
      "input %x: f32[N,4]\nparam %w: f32[8,4]\nparam %b: f32[8]\n"
      "%y: f32[N,8] = Gemm(%x, %w, %b) {alpha=1.0, beta=1.0, trans_a=0, trans_b=1} \"fc\"\noutput %y",
      "input %x: f32[N,4]\nparam %w: f32[8,4]\nparam %b: f32[8]\n"
      "%y: f32[N,8] = MatMul(%x, %w, %b) {trans_b=1} \"fc\"\noutput %y");
}

TEST(GemmToMatmul, AlphaStaysBetaScalesTheBias) {
  expect_rewrite(gemm_to_matmul,
                 "input %x: f32[N,4]\nparam %w: f32[4,8]\nparam %b: f32[8]\n"
                 "%y: f32[N,8] = Gemm(%x, %w, %b) {alpha=2.0, beta=0.5} \"fc\"\noutput %y",
                 "input %x: f32[N,4]\nparam %w: f32[4,8]\nparam %b: f32[8]\nconst %fc/beta: f32[] = {0.5}\n"
                 "%fc/c: f32[8] = Mul(%b, %fc/beta) \"fc/c\"\n"
                 "%y: f32[N,8] = MatMul(%x, %w, %fc/c) {alpha=2.0} \"fc\"\noutput %y");
}

TEST(GemmToMatmul, NoBias) {
  const char* plain = "input %x: f32[N,4]\nparam %w: f32[4,8]\n%y: f32[N,8] = MatMul(%x, %w)\noutput %y";
  expect_rewrite(gemm_to_matmul,
                 "input %x: f32[N,4]\nparam %w: f32[4,8]\n%y: f32[N,8] = Gemm(%x, %w)\noutput %y", plain);
  expect_rewrite(gemm_to_matmul,
                 "input %x: f32[N,4]\nparam %w: f32[4,8]\nparam %b: f32[8]\n"
                 "%y: f32[N,8] = Gemm(%x, %w, %b) {beta=0.0}\noutput %y",
                 plain);
}

TEST(GemmToMatmul, KeepsScaledIntegers) {
  expect_unchanged(
      gemm_to_matmul,
      "input %x: i32[2,4]\nparam %w: i32[4,8]\n%y: i32[2,8] = Gemm(%x, %w) {alpha=0.5}\noutput %y");
}

TEST(FoldTransposeMatmul, BothSides) {
  expect_rewrite(fold_transpose_matmul,
                 "input %a: f32[2,5,4]\nparam %w: f32[8,5]\n%t: f32[2,4,5] = Transpose(%a) {perm=[0,2,1]}\n"
                 "%u: f32[5,8] = Transpose(%w) {perm=[1,0]}\n%y: f32[2,4,8] = MatMul(%t, %u)\noutput %y",
                 "input %a: f32[2,5,4]\nparam %w: f32[8,5]\n%y: f32[2,4,8] = MatMul(%a, %w) {trans_a=1, "
                 "trans_b=1}\noutput %y");
}

TEST(FoldTransposeMatmul, TwoTransposesCancel) {
  expect_rewrite(fold_transpose_matmul,
                 "input %a: f32[4,5]\nparam %w: f32[5,8]\n%u: f32[8,5] = Transpose(%w) {perm=[1,0]}\n"
                 "%y: f32[4,8] = MatMul(%a, %u) {trans_b=1}\noutput %y",
                 "input %a: f32[4,5]\nparam %w: f32[5,8]\n%y: f32[4,8] = MatMul(%a, %w)\noutput %y");
}

TEST(FoldTransposeMatmul, KeepsOtherPermutations) {
  expect_unchanged(fold_transpose_matmul,
                   "input %a: f32[5,2,4]\ninput %b: f32[5,6]\n%t: f32[2,4,5] = Transpose(%a) {perm=[1,2,0]}\n"
                   "%y: f32[2,4,6] = MatMul(%t, %b)\noutput %y");
}

TEST(FoldTransposeMatmul, LeavesTheTransposeToItsOtherReaders) {
  expect_rewrite(fold_transpose_matmul,
                 "input %a: f32[5,4]\ninput %b: f32[5,6]\n%t: f32[4,5] = Transpose(%a) {perm=[1,0]}\n"
                 "%y: f32[4,6] = MatMul(%t, %b)\noutput %y\noutput %t",
                 "input %a: f32[5,4]\ninput %b: f32[5,6]\n%t: f32[4,5] = Transpose(%a) {perm=[1,0]}\n"
                 "%y: f32[4,6] = MatMul(%a, %b) {trans_a=1}\noutput %y\noutput %t");
}

}  // namespace
}  // namespace limber
