#include "tests/passes/golden.h"

namespace limber {
namespace {

constexpr const char* kInputs = "input %q: f32[N,2,5,8]\ninput %k: f32[N,2,7,8]\ninput %v: f32[N,2,7,4]\n";
constexpr const char* kEnd =
    "%w: f32[N,2,5,7] = Softmax(%s) {axis=3}\n%y: f32[N,2,5,4] = MatMul(%w, %v) \"out\"\noutput %y";

TEST(FuseAttention, KeyAlreadyInPlace) {
  expect_rewrite(fuse_attention, std::string(kInputs) + "%s: f32[N,2,5,7] = MatMul(%q, %k) {trans_b=1}\n" + kEnd,
                 std::string(kInputs) + "%y: f32[N,2,5,4] = Attention(%q, %k, %v) {scale=1.0} \"out\"\noutput %y");
}

TEST(FuseAttention, ScaleOnEitherSideAndOnTheProduct) {
  const std::string head = std::string(kInputs) + "const %c: f32[] = {0.5}\nconst %e: f32[] = {8.0}\n";
  const std::string fused = std::string(kInputs) + "%y: f32[N,2,5,4] = Attention(%q, %k, %v) {{scale={}}} \"out\"\noutput %y";
  const auto expect_scale = [&](const char* scale, const std::string& body) {
    expect_rewrite(fuse_attention, head + body + kEnd, fmt::format(fmt::runtime(fused), scale));
  };
  expect_scale("0.5", "%p: f32[N,2,5,7] = MatMul(%q, %k) {trans_b=1}\n%s: f32[N,2,5,7] = Mul(%p, %c)\n");
  expect_scale("0.125", "%p: f32[N,2,5,7] = MatMul(%q, %k) {trans_b=1}\n%s: f32[N,2,5,7] = Div(%p, %e)\n");
  expect_scale("0.5", "%a: f32[N,2,5,8] = Mul(%q, %c)\n%s: f32[N,2,5,7] = MatMul(%a, %k) {trans_b=1}\n");
  expect_scale("0.25", "%a: f32[N,2,5,8] = Mul(%q, %c)\n%b: f32[N,2,7,8] = Mul(%c, %k)\n%s: f32[N,2,5,7] = MatMul(%a, %b) {trans_b=1}\n");
  expect_scale("0.75", "%s: f32[N,2,5,7] = MatMul(%q, %k) {alpha=0.75, trans_b=1}\n");
}

TEST(FuseAttention, TransposedKeyIsTurnedBack) {
  const auto pass = [](Graph& g) {
    LIMBER_TRY(fuse_attention(g));
    return simplify(g);
  };
  expect_rewrite(pass,
                 std::string(kInputs) + "%t: f32[N,2,8,7] = Transpose(%k) {perm=[0,1,3,2]}\n%s: f32[N,2,5,7] = MatMul(%q, %t)\n" + kEnd,
                 std::string(kInputs) + "%y: f32[N,2,5,4] = Attention(%q, %k, %v) {scale=1.0} \"out\"\noutput %y");
  // Keys taken as [B,H,D,T] straight from [B,T,H,D].
  const std::string inputs = "input %q: f32[N,2,5,8]\ninput %k: f32[N,7,2,8]\ninput %v: f32[N,2,7,4]\n";
  expect_rewrite(pass, inputs + "%t: f32[N,2,8,7] = Transpose(%k) {perm=[0,2,3,1]}\n%s: f32[N,2,5,7] = MatMul(%q, %t)\n" + kEnd,
                 inputs + "%out/k: f32[N,2,7,8] = Transpose(%k) {perm=[0,2,1,3]} \"out/k\"\n"
                          "%y: f32[N,2,5,4] = Attention(%q, %out/k, %v) {scale=1.0} \"out\"\noutput %y");
}

TEST(FuseAttention, Mask) {
  const std::string inputs = std::string(kInputs) + "input %m: f32[N,1,1,7]\n";
  for (const char* sum : {"Add(%p, %m)", "Add(%m, %p)"}) {
    expect_rewrite(fuse_attention,
                   inputs + "%p: f32[N,2,5,7] = MatMul(%q, %k) {trans_b=1}\n%s: f32[N,2,5,7] = " + sum + "\n" + kEnd,
                   inputs + "%y: f32[N,2,5,4] = Attention(%q, %k, %v, %m) {scale=1.0} \"out\"\noutput %y");
  }
}

TEST(FuseAttention, RankThree) {
  expect_rewrite(fuse_attention,
                 "input %q: f32[6,5,8]\ninput %k: f32[6,7,8]\ninput %v: f32[6,7,4]\n%s: f32[6,5,7] = MatMul(%q, %k) {trans_b=1}\n"
                 "%w: f32[6,5,7] = Softmax(%s) {axis=2}\n%y: f32[6,5,4] = MatMul(%w, %v)\noutput %y",
                 "input %q: f32[6,5,8]\ninput %k: f32[6,7,8]\ninput %v: f32[6,7,4]\n"
                 "%y: f32[6,5,4] = Attention(%q, %k, %v) {scale=1.0}\noutput %y");
}

TEST(FuseAttention, KeepsWhatIsNotAttention) {
  const std::string in = kInputs;
  const std::string product = "%s: f32[N,2,5,7] = MatMul(%q, %k) {trans_b=1}\n";
  // The weights are wanted too; another axis; a bias on the scores; a scale after the mask.
  expect_unchanged(fuse_attention, in + product + kEnd + "\noutput %w");
  expect_unchanged(fuse_attention, in + product + "%w: f32[N,2,5,7] = Softmax(%s) {axis=2}\n%y: f32[N,2,5,4] = MatMul(%w, %v)\noutput %y");
  expect_unchanged(fuse_attention, in + "param %b: f32[7]\n%s: f32[N,2,5,7] = MatMul(%q, %k, %b) {trans_b=1}\n" + kEnd);
  expect_unchanged(fuse_attention, in + "input %m: f32[5,7]\nconst %c: f32[] = {0.5}\n%p: f32[N,2,5,7] = MatMul(%q, %k) {trans_b=1}\n"
                                        "%t: f32[N,2,5,7] = Add(%p, %m)\n%s: f32[N,2,5,7] = Mul(%t, %c)\n" + kEnd);
  expect_unchanged(fuse_attention, in + product + "%w: f32[N,2,5,7] = Softmax(%s) {axis=3}\n"
                                                  "%y: f32[N,2,5,4] = MatMul(%w, %v) {act=\"relu\"}\noutput %y");
}

TEST(FuseAttention, KeepsKeysSharedAcrossTheBatch) {
  expect_unchanged(fuse_attention,
                   "input %q: f32[4,2,5,8]\ninput %k: f32[1,2,7,8]\ninput %v: f32[4,2,7,4]\n%s: f32[4,2,5,7] = MatMul(%q, %k) {trans_b=1}\n"
                   "%w: f32[4,2,5,7] = Softmax(%s) {axis=3}\n%y: f32[4,2,5,4] = MatMul(%w, %v)\noutput %y");
}

}  // namespace
}  // namespace limber
