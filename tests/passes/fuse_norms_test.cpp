#include "tests/passes/golden.h"

namespace limber {
namespace {

// The mean keeps the type f32[`reduced`].
std::string layer_norm(std::string_view square, std::string_view quotient, std::string_view axes = "2",
                       std::string_view reduced = "N,7,1") {
  return fmt::format(
      "input %x: f32[N,7,6]\nconst %two: f32[] = {{2.0}}\nconst %eps: f32[] = {{0.25}}\n"
      "%m: f32[{2}] = ReduceMean(%x) {{axes=[{1}], keepdims=1}}\n%d: f32[N,7,6] = Sub(%x, %m)\n"
      "%s: f32[N,7,6] = {0}\n%v: f32[{2}] = ReduceMean(%s) {{axes=[{1}], keepdims=1}}\n"
      "%a: f32[{2}] = Add(%v, %eps)\n%r: f32[{2}] = Sqrt(%a)\n{3}\noutput %y",
      square, axes, reduced, quotient);
}

TEST(FuseNorms, LayerNormOverTheLastAxes) {
  const char* fused =
      "input %x: f32[N,7,6]\n%y: f32[N,7,6] = LayerNorm(%x) {axis=2, epsilon=0.25}\noutput %y";
  expect_rewrite(fuse_norms, layer_norm("Pow(%d, %two)", "%y: f32[N,7,6] = Div(%d, %r)"), fused);
  expect_rewrite(fuse_norms, layer_norm("Mul(%d, %d)", "%y: f32[N,7,6] = Div(%d, %r)"), fused);
  expect_rewrite(fuse_norms,
                 layer_norm("Mul(%d, %d)", "%i: f32[N,7,1] = Reciprocal(%r)\n%y: f32[N,7,6] = Mul(%i, %d)"),
                 fused);
  expect_rewrite(fuse_norms, layer_norm("Mul(%d, %d)", "%y: f32[N,7,6] = Div(%d, %r)", "1,2", "N,1,1"),
                 "input %x: f32[N,7,6]\n%y: f32[N,7,6] = LayerNorm(%x) {axis=1, epsilon=0.25}\noutput %y");
}

TEST(FuseNorms, LayerNormOverChannelsTurnsThemLast) {
  expect_rewrite(fuse_norms, layer_norm("Mul(%d, %d)", "%y: f32[N,7,6] = Div(%d, %r) \"n\"", "1", "N,1,6"),
                 "input %x: f32[N,7,6]\n%n/last: f32[N,6,7] = Transpose(%x) {perm=[0,2,1]} \"n/last\"\n"
                 "%n: f32[N,6,7] = LayerNorm(%n/last) {axis=2, epsilon=0.25} \"n\"\n"
                 "%y: f32[N,7,6] = Transpose(%n) {perm=[0,2,1]} \"n/back\"\noutput %y");
}

TEST(FuseNorms, KeepsWhatIsNoLayerNorm) {
  const auto kept = [](const std::string& text) {
    EXPECT_EQ(count_ops(rewritten(fuse_norms, text), OpKind::kLayerNorm), 0) << text;
  };
  kept(layer_norm("Mul(%d, %d)", "%y: f32[N,7,6] = Div(%d, %r)", "0", "1,7,6"));  // neither last nor channels
  kept(layer_norm("Mul(%d, %x)", "%y: f32[N,7,6] = Div(%d, %r)"));                // not a square
  kept(layer_norm("Mul(%d, %d)", "%y: f32[N,7,6] = Div(%x, %r)"));                // not centred
  kept(layer_norm("Mul(%d, %d)", "%y: f32[N,7,6] = Div(%d, %r)\noutput %r"));  // the deviation is wanted too
}

TEST(FuseNorms, ScaleAndShiftOfChannelsReachTheTurnedLayerNorm) {
  expect_rewrite(fold_batch_norm,
                 "input %x: f32[N,5,5,6]\nparam %s: f32[6,1,1]\nparam %b: f32[1,6,1,1]\n"
                 "%n: f32[N,5,5,6] = LayerNorm(%x) {axis=3, epsilon=0.25}\n%t: f32[N,6,5,5] = Transpose(%n) "
                 "{perm=[0,3,1,2]}\n"
                 "%m: f32[N,6,5,5] = Mul(%s, %t)\n%y: f32[N,6,5,5] = Add(%m, %b)\noutput %y",
                 "input %x: f32[N,5,5,6]\nparam %s: f32[6,1,1]\nparam %b: f32[1,6,1,1]\n"
                 "%m/vector: f32[6] = Reshape(%s) {shape=<6>} \"m/vector\"\n%y/vector: f32[6] = Reshape(%b) "
                 "{shape=<6>} \"y/vector\"\n"
                 "%n: f32[N,5,5,6] = LayerNorm(%x, %m/vector, %y/vector) {axis=3, epsilon=0.25}\n"
                 "%t: f32[N,6,5,5] = Transpose(%n) {perm=[0,3,1,2]}\noutput %t as \"y\"");
  expect_unchanged(
      fold_batch_norm,
      "input %x: f32[N,5,5,6]\nparam %s: f32[5,1]\n%n: f32[N,5,5,6] = LayerNorm(%x) {axis=3, epsilon=0.25}\n"
      "%t: f32[N,6,5,5] = Transpose(%n) {perm=[0,3,1,2]}\n%y: f32[N,6,5,5] = Mul(%s, %t)\noutput %y");
}

std::string group_norm(std::string_view ones) {
  return fmt::format(
      "input %x: f32[2,6,4,4]\nconst %o: f32[3] = {{{}}}\nconst %z: f32[3] = {{0.0, 0.0, 0.0}}\n"
      "%a: f32[2,3,32] = Reshape(%x) {{shape=<2,3,32>}}\n%b: f32[2,3,32] = InstanceNorm(%a, %o, %z) "
      "{{epsilon=0.1}} \"n\"\n"
      "%y: f32[2,6,4,4] = Reshape(%b) {{shape=<2,6,4,4>}}\noutput %y",
      ones);
}

TEST(FuseNorms, GroupNorm) {
  expect_rewrite(
      fuse_norms, group_norm("1.0, 1.0, 1.0"),
      "input %x: f32[2,6,4,4]\nconst %n/scale/value: f32[] = {1.0}\nconst %n/bias/value: f32[] = {0.0}\n"
      "%n/scale: f32[6] = Expand(%n/scale/value) {shape=<6>} \"n/scale\"\n%n/bias: f32[6] = "
      "Expand(%n/bias/value) {shape=<6>} \"n/bias\"\n"
      "%y: f32[2,6,4,4] = GroupNorm(%x, %n/scale, %n/bias) {epsilon=0.1, groups=3} \"n\"\noutput %y");
  expect_unchanged(fuse_norms, group_norm("1.0, 2.0, 1.0"));
}

}  // namespace
}  // namespace limber
