#include "tests/passes/golden.h"

namespace limber {
namespace {

constexpr const char* kInputs = "input %q: f32[N,2,5,8]\ninput %k: f32[N,2,7,8]\ninput %v: f32[N,2,7,4]\n";
constexpr const char* kEnd =
    "%w: f32[N,2,5,7] = Softmax(%s) {axis=3}\n%y: f32[N,2,5,4] = MatMul(%w, %v) \"out\"\noutput %y";

TEST(FuseAttention, KeyAlreadyInPlace) {
  expect_rewrite(
      fuse_attention, std::string(kInputs) + "%s: f32[N,2,5,7] = MatMul(%q, %k) {trans_b=1}\n" + kEnd,
      std::string(kInputs) + "%y: f32[N,2,5,4] = Attention(%q, %k, %v) {scale=1.0} \"out\"\noutput %y");
}

TEST(FuseAttention, ScaleOnEitherSideAndOnTheProduct) {
  const std::string head = std::string(kInputs) + "const %c: f32[] = {0.5}\nconst %e: f32[] = {8.0}\n";
  const std::string fused =
      std::string(kInputs) + "%y: f32[N,2,5,4] = Attention(%q, %k, %v) {{scale={}}} \"out\"\noutput %y";
  const auto expect_scale = [&](const char* scale, const std::string& body) {
    expect_rewrite(fuse_attention, head + body + kEnd, fmt::format(fmt::runtime(fused), scale));
  };
  expect_scale("0.5", "%p: f32[N,2,5,7] = MatMul(%q, %k) {trans_b=1}\n%s: f32[N,2,5,7] = Mul(%p, %c)\n");
  expect_scale("0.125", "%p: f32[N,2,5,7] = MatMul(%q, %k) {trans_b=1}\n%s: f32[N,2,5,7] = Div(%p, %e)\n");
  expect_scale("0.5", "%a: f32[N,2,5,8] = Mul(%q, %c)\n%s: f32[N,2,5,7] = MatMul(%a, %k) {trans_b=1}\n");
  expect_scale("0.25",
               "%a: f32[N,2,5,8] = Mul(%q, %c)\n%b: f32[N,2,7,8] = Mul(%c, %k)\n%s: f32[N,2,5,7] = "
               "MatMul(%a, %b) {trans_b=1}\n");
  expect_scale("0.75", "%s: f32[N,2,5,7] = MatMul(%q, %k) {alpha=0.75, trans_b=1}\n");
}

TEST(FuseAttention, TransposedKeyIsTurnedBack) {
  const auto pass = [](Graph& g) {
    LIMBER_TRY(fuse_attention(g));
    return simplify(g);
  };
  expect_rewrite(
      pass,
      std::string(kInputs) +
          "%t: f32[N,2,8,7] = Transpose(%k) {perm=[0,1,3,2]}\n%s: f32[N,2,5,7] = MatMul(%q, %t)\n" + kEnd,
      std::string(kInputs) + "%y: f32[N,2,5,4] = Attention(%q, %k, %v) {scale=1.0} \"out\"\noutput %y");
  // Keys taken as [B,H,D,T] straight from [B,T,H,D].
  const std::string inputs = "input %q: f32[N,2,5,8]\ninput %k: f32[N,7,2,8]\ninput %v: f32[N,2,7,4]\n";
  expect_rewrite(
      pass,
      inputs + "%t: f32[N,2,8,7] = Transpose(%k) {perm=[0,2,3,1]}\n%s: f32[N,2,5,7] = MatMul(%q, %t)\n" +
          kEnd,
      inputs +
          "%out/k: f32[N,2,7,8] = Transpose(%k) {perm=[0,2,1,3]} \"out/k\"\n"
          "%y: f32[N,2,5,4] = Attention(%q, %out/k, %v) {scale=1.0} \"out\"\noutput %y");
}

TEST(FuseAttention, Mask) {
  const std::string inputs = std::string(kInputs) + "input %m: f32[N,1,1,7]\n";
  for (const char* sum : {"Add(%p, %m)", "Add(%m, %p)"}) {
    expect_rewrite(
        fuse_attention,
        inputs + "%p: f32[N,2,5,7] = MatMul(%q, %k) {trans_b=1}\n%s: f32[N,2,5,7] = " + sum + "\n" + kEnd,
        inputs + "%y: f32[N,2,5,4] = Attention(%q, %k, %v, %m) {scale=1.0} \"out\"\noutput %y");
  }
}

TEST(FuseAttention, SeveralMasksAreAddedFirst) {
  const std::string inputs =
      std::string(kInputs) + "param %b: f32[2,5,7]\ninput %m: f32[N,2,5,7]\nconst %c: f32[] = {0.5}\n";
  expect_rewrite(fuse_attention,
                 inputs +
                     "%p: f32[N,2,5,7] = MatMul(%q, %k) {trans_b=1}\n%r: f32[N,2,5,7] = Mul(%p, %c)\n"
                     "%t: f32[N,2,5,7] = Add(%m, %r)\n%s: f32[N,2,5,7] = Add(%t, %b)\n" +
                     kEnd,
                 inputs.substr(0, inputs.find("const")) +
                     "%out/mask: f32[N,2,5,7] = Add(%b, %m) \"out/mask\"\n"
                     "%y: f32[N,2,5,4] = Attention(%q, %k, %v, %out/mask) {scale=0.5} \"out\"\noutput %y");
}

// Shifted windows: 3 windows of 2 images, 2 heads.
TEST(FuseAttention, MaskOfWindowsSharedByImagesAndHeads) {
  const std::string inputs = "input %q: f32[6,2,5,8]\ninput %k: f32[6,2,5,8]\ninput %v: f32[6,2,5,8]\n";
  const auto attention = [&](std::string_view mask) {
    return inputs +
           fmt::format(
               "param %b: f32[1,2,5,5]\nparam %m: f32[{}]\n%p: f32[6,2,5,5] = MatMul(%q, %k) {{trans_b=1}}\n"
               "%a: f32[6,2,5,5] = Add(%p, %b)\n%r: f32[2,3,2,5,5] = Reshape(%a) {{shape=<2,3,2,5,5>}}\n"
               "%t: f32[2,3,2,5,5] = Add(%r, %m)\n%s: f32[6,2,5,5] = Reshape(%t) {{shape=<6,2,5,5>}}\n"
               "%w: f32[6,2,5,5] = Softmax(%s) {{axis=3}}\n%y: f32[6,2,5,8] = MatMul(%w, %v) \"out\"\noutput "
               "%y",
               mask);
  };
  const Graph g = rewritten(fuse_attention, attention("1,3,1,5,5"));
  ASSERT_EQ(g.nodes().back().op, OpKind::kAttention) << print(g);
  EXPECT_EQ(g.type(g.nodes().back().inputs[3]).to_string(), "f32[6,2,5,5]");
  expect_unchanged(fuse_attention, attention("2,3,1,5,5"));
  expect_unchanged(fuse_attention, attention("1,3,2,5,5"));
}

TEST(FuseAttention, RankThree) {
  expect_rewrite(fuse_attention,
                 "input %q: f32[6,5,8]\ninput %k: f32[6,7,8]\ninput %v: f32[6,7,4]\n%s: f32[6,5,7] = "
                 "MatMul(%q, %k) {trans_b=1}\n"
                 "%w: f32[6,5,7] = Softmax(%s) {axis=2}\n%y: f32[6,5,4] = MatMul(%w, %v)\noutput %y",
                 "input %q: f32[6,5,8]\ninput %k: f32[6,7,8]\ninput %v: f32[6,7,4]\n"
                 "%y: f32[6,5,4] = Attention(%q, %k, %v) {scale=1.0}\noutput %y");
}

TEST(FuseAttention, KeepsWhatIsNotAttention) {
  const std::string in = kInputs;
  const std::string product = "%s: f32[N,2,5,7] = MatMul(%q, %k) {trans_b=1}\n";
  // The weights are wanted too; another axis; a bias on the scores; a scale after the mask.
  expect_unchanged(fuse_attention, in + product + kEnd + "\noutput %w");
  expect_unchanged(
      fuse_attention,
      in + product + "%w: f32[N,2,5,7] = Softmax(%s) {axis=2}\n%y: f32[N,2,5,4] = MatMul(%w, %v)\noutput %y");
  expect_unchanged(fuse_attention,
                   in + "param %b: f32[7]\n%s: f32[N,2,5,7] = MatMul(%q, %k, %b) {trans_b=1}\n" + kEnd);
  expect_unchanged(
      fuse_attention,
      in +
          "input %m: f32[5,7]\nconst %c: f32[] = {0.5}\n%p: f32[N,2,5,7] = MatMul(%q, %k) {trans_b=1}\n"
          "%t: f32[N,2,5,7] = Add(%p, %m)\n%s: f32[N,2,5,7] = Mul(%t, %c)\n" +
          kEnd);
  expect_unchanged(fuse_attention, in + product +
                                       "%w: f32[N,2,5,7] = Softmax(%s) {axis=3}\n"
                                       "%y: f32[N,2,5,4] = MatMul(%w, %v) {act=\"relu\"}\noutput %y");
}

TEST(FuseAttention, KeepsKeysSharedAcrossTheBatch) {
  expect_unchanged(fuse_attention,
                   "input %q: f32[4,2,5,8]\ninput %k: f32[1,2,7,8]\ninput %v: f32[4,2,7,4]\n%s: f32[4,2,5,7] "
                   "= MatMul(%q, %k) {trans_b=1}\n"
                   "%w: f32[4,2,5,7] = Softmax(%s) {axis=3}\n%y: f32[4,2,5,4] = MatMul(%w, %v)\noutput %y");
}

}  // namespace
}  // namespace limber
