#include "tests/passes/golden.h"

namespace limber {
namespace {

constexpr const char* kNorm = "param %s: f32[6]\nparam %b: f32[6]\nstate %m: f32[6]\nstate %v: f32[6]\n";
// What a BatchNorm %y of %s, %b, %m, %v with epsilon 0.5 is made of.
constexpr const char* kScaleShift =
    "%y/var: f32[6] = Add(%v, %y/epsilon) \"y/var\"\n%y/std: f32[6] = Sqrt(%y/var) \"y/std\"\n"
    "%y/scale: f32[6] = Div(%s, %y/std) \"y/scale\"\n";
constexpr const char* kShift =
    "%y/moved: f32[6] = Mul(%m, %y/scale) \"y/moved\"\n%y/shift: f32[6] = Sub(%b, %y/moved) \"y/shift\"\n";
constexpr const char* kEpsilon = "const %y/epsilon: f32[] = {0.5}\n";
constexpr const char* kPadded = "{dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}";
constexpr const char* kUnpadded = "{dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}";

TEST(FoldBatchNorm, IntoConv) {
  const std::string head = std::string("input %x: f32[N,4,8,8]\nparam %w: f32[6,4,3,3]\n") + kNorm;
  expect_rewrite(
      fold_batch_norm,
      fmt::format("{}%c: f32[N,6,8,8] = Conv(%x, %w) {}\n"
                  "%y: f32[N,6,8,8] = BatchNorm(%c, %s, %b, %m, %v) {{epsilon=0.5}}\noutput %y",
                  head, kPadded),
      fmt::format(
          "{}{}{}%c/weight/scale: f32[6,1,1,1] = Reshape(%y/scale) {{shape=<6,1,1,1>}} \"c/weight/scale\"\n"
          "%c/weight: f32[6,4,3,3] = Mul(%w, %c/weight/scale) \"c/weight\"\n{}"
          "%c: f32[N,6,8,8] = Conv(%x, %c/weight, %y/shift) {}\noutput %c as \"y\"",
          head, kEpsilon, kScaleShift, kShift, kPadded));
}

TEST(FoldBatchNorm, IntoConvWithBias) {
  const std::string head =
      std::string("input %x: f32[N,4,8]\nparam %w: f32[6,4,3]\nparam %o: f32[6]\n") + kNorm;
  const Graph g =
      rewritten(fold_batch_norm,
                head +
                    "%c: f32[N,6,8] = Conv(%x, %w, %o) {dilations=[1], groups=1, pads=[1,1], strides=[1]}\n"
                    "%y: f32[N,6,8] = BatchNorm(%c, %s, %b, %m, %v) {epsilon=0.5}\noutput %y");
  EXPECT_EQ(count_ops(g, OpKind::kBatchNorm), 0);
  const Node& conv = g.nodes().back();
  ASSERT_EQ(conv.op, OpKind::kConv);
  const Node& sum = g.node(g.value(conv.inputs[2]).producer);  // o * scale + shift
  EXPECT_EQ(sum.op, OpKind::kAdd);
  EXPECT_EQ(g.value(sum.inputs[1]).name, "y/shift");
  EXPECT_EQ(g.node(g.value(sum.inputs[0]).producer).op, OpKind::kMul);
}

TEST(FoldBatchNorm, KeepsItWhenTheConvolutionServesOthers) {
  const std::string head = std::string("input %x: f32[N,4,8,8]\nparam %w: f32[6,4,3,3]\n") + kNorm;
  const std::string body = fmt::format(
      "%c: f32[N,6,8,8] = Conv(%x, %w) {}\n%y: f32[N,6,8,8] = BatchNorm(%c, %s, %b, %m, %v) "
      "{{epsilon=0.5}}\noutput %y\n",
      kPadded);
  expect_unchanged(fold_batch_norm, head + body + "output %c");
  expect_unchanged(fold_batch_norm,
                   head + fmt::format("%c: f32[N,6,8,8] = Conv(%x, %w) {}\n"
                                      "%y: f32[N,6,8,8] = BatchNorm(%c, %s, %b, %m, %v) {{epsilon=0.5}}\n"
                                      "%z: f32[N,6,8,8] = Add(%c, %y)\noutput %z",
                                      kPadded));
}

TEST(FoldBatchNorm, KeepsItAfterAnActivation) {
  expect_unchanged(fold_batch_norm,
                   std::string("input %x: f32[N,4,8,8]\nparam %w: f32[6,4,3,3]\n") + kNorm +
                       "%c: f32[N,6,8,8] = Conv(%x, %w) {act=\"relu\", dilations=[1,1], groups=1, "
                       "pads=[1,1,1,1], strides=[1,1]}\n"
                       "%y: f32[N,6,8,8] = BatchNorm(%c, %s, %b, %m, %v) {epsilon=0.5}\noutput %y");
}

TEST(FoldBatchNorm, KeepsItWhenSomethingIsNotStatic) {
  expect_unchanged(
      fold_batch_norm,
      "input %x: f32[N,4,8,8]\ninput %s: f32[6]\nparam %w: f32[6,4,3,3]\nparam %b: f32[6]\n" +
          fmt::format("%c: f32[N,6,8,8] = Conv(%x, %w) {}\n"
                      "%y: f32[N,6,8,8] = BatchNorm(%c, %s, %b, %b, %b) {{epsilon=0.5}}\noutput %y",
                      kPadded));
  expect_unchanged(
      fold_batch_norm,
      std::string("input %x: f32[N,4,8,8]\ninput %w: f32[6,4,3,3]\n") + kNorm +
          fmt::format("%c: f32[N,6,8,8] = Conv(%x, %w) {}\n"
                      "%y: f32[N,6,8,8] = BatchNorm(%c, %s, %b, %m, %v) {{epsilon=0.5}}\noutput %y",
                      kPadded));
}

TEST(FoldBatchNorm, IntoConvTranspose) {
  const std::string attrs =
      "{dilations=[1,1], groups=1, output_padding=[0,0], pads=[0,0,0,0], strides=[2,2]}";
  const std::string head = std::string("input %x: f32[N,4,8,8]\nparam %w: f32[4,6,2,2]\n") + kNorm;
  expect_rewrite(
      fold_batch_norm,
      head + "%c: f32[N,6,16,16] = ConvTranspose(%x, %w) " + attrs +
          "\n%y: f32[N,6,16,16] = BatchNorm(%c, %s, %b, %m, %v) {epsilon=0.5}\noutput %y",
      head + kEpsilon + kScaleShift +
          "%c/weight/scale: f32[1,6,1,1] = Reshape(%y/scale) {shape=<1,6,1,1>} \"c/weight/scale\"\n"
          "%c/weight: f32[4,6,2,2] = Mul(%w, %c/weight/scale) \"c/weight\"\n" +
          kShift + "%c: f32[N,6,16,16] = ConvTranspose(%x, %c/weight, %y/shift) " + attrs +
          "\noutput %c as \"y\"");
}

TEST(FoldBatchNorm, IntoGroupedConvTranspose) {
  const Graph g = rewritten(
      fold_batch_norm,
      std::string("input %x: f32[N,4,8,8]\nparam %w: f32[4,3,2,2]\n") + kNorm +
          "%c: f32[N,6,16,16] = ConvTranspose(%x, %w) {dilations=[1,1], groups=2, output_padding=[0,0], "
          "pads=[0,0,0,0], "
          "strides=[2,2]}\n%y: f32[N,6,16,16] = BatchNorm(%c, %s, %b, %m, %v) {epsilon=0.5}\noutput %y");
  EXPECT_EQ(count_ops(g, OpKind::kBatchNorm), 0);
  EXPECT_EQ(g.type(*g.find("c/weight/scale")).to_string(), "f32[2,1,3,1,1]");
}

TEST(FoldBatchNorm, IntoMatMulOfEitherOrientation) {
  for (const bool transposed : {false, true}) {
    const std::string w = transposed ? "6,4" : "4,6", factor = transposed ? "6,1" : "1,6";
    const std::string head = fmt::format("input %x: f32[N,4]\nparam %w: f32[{}]\n{}", w, kNorm);
    const std::string attrs = transposed ? " {trans_b=1}" : "";
    expect_rewrite(
        fold_batch_norm,
        head + "%c: f32[N,6] = MatMul(%x, %w)" + attrs +
            "\n%y: f32[N,6] = BatchNorm(%c, %s, %b, %m, %v) {epsilon=0.5}\noutput %y",
        head + kEpsilon + kScaleShift +
            fmt::format("%c/weight/scale: f32[{0}] = Reshape(%y/scale) {{shape=<{0}>}} \"c/weight/scale\"\n"
                        "%c/weight: f32[{1}] = Mul(%w, %c/weight/scale) \"c/weight\"\n",
                        factor, w) +
            kShift + "%c: f32[N,6] = MatMul(%x, %c/weight, %y/shift)" + attrs + "\noutput %c as \"y\"");
  }
}

TEST(FoldBatchNorm, TwoInARow) {
  const Graph g = rewritten(fold_batch_norm,
                            std::string("input %x: f32[N,6,8,8]\n") + kNorm +
                                "%a: f32[N,6,8,8] = BatchNorm(%x, %s, %b, %m, %v) {epsilon=0.25}\n"
                                "%y: f32[N,6,8,8] = BatchNorm(%a, %s, %b, %m, %v) {epsilon=0.5}\noutput %y");
  EXPECT_EQ(count_ops(g, OpKind::kBatchNorm), 1);
  EXPECT_EQ(g.nodes().back().attrs.f("epsilon"), 0.25);
}

TEST(FoldBatchNorm, AloneItStays) {
  expect_unchanged(fold_batch_norm,
                   std::string("input %x: f32[N,6,8,8]\n") + kNorm +
                       "%y: f32[N,6,8,8] = BatchNorm(%x, %s, %b, %m, %v) {epsilon=0.5}\noutput %y");
}

TEST(FoldBatchNorm, IntoAnUnpaddedConvThatReadsIt) {
  const std::string body = "%n: f32[N,6,8,8] = BatchNorm(%x, %s, %b, %m, %v) {epsilon=0.5}\n";
  const std::string head = std::string("input %x: f32[N,6,8,8]\nparam %w: f32[4,6,1,1]\n") + kNorm;
  const Graph folded = rewritten(
      fold_batch_norm, head + body + "%y: f32[N,4,8,8] = Conv(%n, %w) " + kUnpadded + "\noutput %y");
  EXPECT_EQ(count_ops(folded, OpKind::kBatchNorm), 0);
  EXPECT_EQ(count_ops(folded, OpKind::kReduceSum), 1);
  const std::string wide = std::string("input %x: f32[N,6,8,8]\nparam %w: f32[4,6,3,3]\n") + kNorm;
  expect_unchanged(fold_batch_norm,
                   wide + body + "%y: f32[N,4,8,8] = Conv(%n, %w) " + kPadded + "\noutput %y");
}

// --- element-wise arithmetic with static operands ---------------------------------------------------------

std::string after_conv(std::string_view operand_type, std::string_view expression) {
  return fmt::format(
      "input %x: f32[N,4,8,8]\nparam %w: f32[6,4,1,1]\nparam %t: {}\n%c: f32[N,6,8,8] = Conv(%x, %w) {}\n"
      "%y: f32[N,6,8,8] = {}\noutput %y",
      operand_type, kUnpadded, expression);
}

TEST(FoldAffine, PerChannelArithmeticIntoConv) {
  for (const char* type : {"f32[6,1,1]", "f32[1,6,1,1]", "f32[]", "f32[1]", "f32[1,1,1,1]"}) {
    for (const char* expression :
         {"Mul(%c, %t)", "Mul(%t, %c)", "Div(%c, %t)", "Add(%c, %t)", "Add(%t, %c)", "Sub(%c, %t)"}) {
      const Graph g = rewritten(fold_batch_norm, after_conv(type, expression));
      EXPECT_EQ(g.nodes().back().op, OpKind::kConv) << type << " " << expression;
      EXPECT_EQ(g.nodes().back().inputs[0], *g.find("x"));
    }
  }
}

TEST(FoldAffine, KeepsArithmeticThatIsNotPerChannel) {
  for (const char* type : {"f32[8]", "f32[8,8]", "f32[6,8,8]"})
    expect_unchanged(fold_batch_norm, after_conv(type, "Mul(%c, %t)"));
  expect_unchanged(fold_batch_norm, after_conv("f32[6,1,1]", "Sub(%t, %c)"));
  expect_unchanged(fold_batch_norm, after_conv("f32[6,1,1]", "Div(%t, %c)"));
}

TEST(FoldAffine, ConvNormScaleShiftAllBecomeOneConv) {
  const Graph g = rewritten(
      fold_batch_norm,
      std::string("input %x: f32[N,4,8,8]\nparam %w: f32[6,4,3,3]\nparam %t: f32[6,1,1]\n") + kNorm +
          fmt::format("%c: f32[N,6,8,8] = Conv(%x, %w) {}\n"
                      "%n: f32[N,6,8,8] = BatchNorm(%c, %s, %b, %m, %v) {{epsilon=0.5}}\n"
                      "%p: f32[N,6,8,8] = Mul(%n, %t)\n%q: f32[N,6,8,8] = Add(%t, %p)\noutput %q",
                      kPadded));
  for (const Node& node : g.nodes()) {
    EXPECT_FALSE(node.op == OpKind::kAdd && g.type(node.outputs[0]).rank() == 4);
  }
  EXPECT_EQ(g.nodes().back().op, OpKind::kConv);
}

TEST(FoldAffine, NormalisationOfTheInputIntoTheFirstConv) {
  const Graph g =
      rewritten(fold_batch_norm,
                "input %x: f32[N,3,8,8]\nparam %w: f32[6,3,4,4]\nparam %b: f32[6]\n"
                "const %mean: f32[1,3,1,1] = {0.5, 0.4, 0.3}\nconst %std: f32[1,3,1,1] = {0.2, 0.3, 0.4}\n"
                "%a: f32[N,3,8,8] = Sub(%x, %mean)\n%n: f32[N,3,8,8] = Div(%a, %std)\n"
                "%y: f32[N,6,2,2] = Conv(%n, %w, %b) {dilations=[1,1], groups=1, pads=[0,0,0,0], "
                "strides=[4,4]}\noutput %y");
  EXPECT_EQ(g.nodes().back().inputs[0], *g.find("x"));
}

TEST(FoldAffine, BiasIntoMatMul) {
  const char* head = "input %x: f32[N,7,4]\nparam %w: f32[4,6]\nparam %b: f32[6]\n";
  const std::string folded = std::string(head) + "%a: f32[N,7,6] = MatMul(%x, %w, %b)\noutput %a as \"y\"";
  for (const char* sum : {"Add(%a, %b)", "Add(%b, %a)"}) {
    expect_rewrite(
        fold_batch_norm,
        fmt::format("{}%a: f32[N,7,6] = MatMul(%x, %w)\n%y: f32[N,7,6] = {}\noutput %y", head, sum), folded);
  }
}

TEST(FoldAffine, BiasAlsoWithoutStaticWeights) {
  expect_rewrite(
      fold_batch_norm,
      "input %x: f32[N,7,4]\ninput %w: f32[N,4,6]\nparam %b: f32[1,1,6]\n%a: f32[N,7,6] = MatMul(%x, %w)\n"
      "%y: f32[N,7,6] = Add(%a, %b)\noutput %y",
      "input %x: f32[N,7,4]\ninput %w: f32[N,4,6]\nparam %b: f32[1,1,6]\n"
      "%y/vector: f32[6] = Reshape(%b) {shape=<6>} \"y/vector\"\n"
      "%a: f32[N,7,6] = MatMul(%x, %w, %y/vector)\noutput %a as \"y\"");
}

TEST(FoldAffine, KeepsABiasThatVariesByRow) {
  expect_unchanged(fold_batch_norm,
                   "input %x: f32[N,7,4]\nparam %w: f32[4,6]\nparam %b: f32[7,6]\n"
                   "%a: f32[N,7,6] = MatMul(%x, %w)\n%y: f32[N,7,6] = Add(%a, %b)\noutput %y");
  expect_unchanged(fold_batch_norm,
                   "input %x: f32[7,4]\nparam %w: f32[4,6]\ninput %b: f32[6]\n"
                   "%a: f32[7,6] = MatMul(%x, %w)\n%y: f32[7,6] = Add(%a, %b)\noutput %y");
}

TEST(FoldAffine, ScalarFactorOfAProductOfActivationsIsItsAlpha) {
  expect_rewrite(
      fold_batch_norm,
      "input %a: f32[N,7,4]\ninput %b: f32[N,4,6]\nconst %c: f32[] = {0.5}\n%p: f32[N,7,6] = MatMul(%a, %b)\n"
      "%y: f32[N,7,6] = Mul(%p, %c)\noutput %y",
      "input %a: f32[N,7,4]\ninput %b: f32[N,4,6]\n%p: f32[N,7,6] = MatMul(%a, %b) {alpha=0.5}\noutput %p as "
      "\"y\"");
}

TEST(FoldAffine, LayerScaleIntoMatMul) {
  const Graph g = rewritten(fold_batch_norm,
                            "input %x: f32[N,7,4]\nparam %w: f32[4,6]\nparam %b: f32[6]\nparam %t: f32[6]\n"
                            "%a: f32[N,7,6] = MatMul(%x, %w, %b)\n%y: f32[N,7,6] = Mul(%t, %a)\noutput %y");
  EXPECT_EQ(g.nodes().back().op, OpKind::kMatMul);
  EXPECT_EQ(g.num_nodes(), 4u);  // the factor as a row, weights, bias, product
}

TEST(FoldAffine, ScaleAndBiasIntoLayerNorm) {
  expect_rewrite(fold_batch_norm,
                 "input %x: f32[N,7,6]\nparam %s: f32[6]\nparam %b: f32[1,1,6]\n"
                 "%n: f32[N,7,6] = LayerNorm(%x) {axis=2, epsilon=0.1}\n%m: f32[N,7,6] = Mul(%n, %s)\n"
                 "%y: f32[N,7,6] = Add(%m, %b)\noutput %y",
                 "input %x: f32[N,7,6]\nparam %s: f32[6]\nparam %b: f32[1,1,6]\n"
                 "%n/operand: f32[6] = Reshape(%b) {shape=<6>} \"n/operand\"\n"
                 "%n: f32[N,7,6] = LayerNorm(%x, %s, %n/operand) {axis=2, epsilon=0.1}\noutput %n as \"y\"");
}

TEST(FoldAffine, KeepsAFactorOutsideTheNormalisedAxes) {
  expect_unchanged(
      fold_batch_norm,
      "input %x: f32[N,7,6]\nparam %s: f32[7,1]\n%n: f32[N,7,6] = LayerNorm(%x) {axis=2, epsilon=0.1}\n"
      "%y: f32[N,7,6] = Mul(%n, %s)\noutput %y");
}

}  // namespace
}  // namespace limber
