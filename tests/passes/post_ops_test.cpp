#include "tests/passes/golden.h"

namespace limber {
namespace {

constexpr const char* kHead = "input %x: f32[N,4,8,8]\nparam %w: f32[4,4,3,3]\nparam %v: f32[4,4,3,3]\n";
constexpr const char* kConv = "{dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}";
constexpr const char* kType = "f32[N,4,8,8]";

// {C}: attributes of a convolution, {T}: the type of everything.
std::string net(std::string text) {
  for (const auto& [from, to] : {std::pair("{C}", kConv), std::pair("{T}", kType)}) {
    for (size_t i = text.find(from); i != std::string::npos; i = text.find(from)) text.replace(i, 3, to);
  }
  return kHead + text;
}
std::string conv_act(std::string_view act) {
  return fmt::format("{{act=\"{}\", dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}}", act);
}
// Without what no longer appears.
std::string net_without_v(std::string text) {
  std::string whole = net(std::move(text));
  const std::string v = "param %v: f32[4,4,3,3]\n";
  return whole.erase(whole.find(v), v.size());
}

TEST(FuseActivation, IntoConv) {
  expect_rewrite(fuse_activation, net_without_v("%a: {T} = Conv(%x, %w) {C}\n%y: {T} = Relu(%a)\noutput %y"),
                 net_without_v("%a: {T} = Conv(%x, %w) " + conv_act("relu") + "\noutput %a as \"y\""));
}

TEST(FuseActivation, EveryKindIntoMatMul) {
  const std::pair<const char*, const char*> cases[] = {
      {"Relu(%a)", "act=\"relu\""},
      {"LeakyRelu(%a) {alpha=0.1}", "act=\"leaky_relu\", act_alpha=0.1"},
      {"Clip(%a) {max=6.0, min=0.0}", "act=\"clip\", act_alpha=0.0, act_beta=6.0"},
      {"Clip(%a) {min=-1.0}", "act=\"clip\", act_alpha=-1.0, act_beta=inf"},
      {"Sigmoid(%a)", "act=\"sigmoid\""},
      {"Tanh(%a)", "act=\"tanh\""},
      {"HardSigmoid(%a) {alpha=0.2, beta=0.5}", "act=\"hard_sigmoid\", act_alpha=0.2, act_beta=0.5"},
      {"HardSwish(%a)", "act=\"hard_swish\""},
      {"Silu(%a)", "act=\"silu\""},
      {"Gelu(%a) {approximate=\"none\"}", "act=\"gelu\""},
      {"Gelu(%a) {approximate=\"tanh\"}", "act=\"gelu_tanh\""},
      {"Elu(%a) {alpha=1.0}", "act=\"elu\", act_alpha=1.0"},
      {"Mish(%a)", "act=\"mish\""},
      {"Softplus(%a)", "act=\"softplus\""},
  };
  for (const auto& [activation, attrs] : cases) {
    expect_rewrite(
        fuse_activation,
        fmt::format(
            "input %x: f32[N,4]\nparam %w: f32[4,8]\n%a: f32[N,8] = MatMul(%x, %w)\n%y: f32[N,8] = {}\n"
            "output %y",
            activation),
        fmt::format("input %x: f32[N,4]\nparam %w: f32[4,8]\n%a: f32[N,8] = MatMul(%x, %w) {{{}}}\n"
                    "output %a as \"y\"",
                    attrs));
  }
}

TEST(FuseActivation, KeepsWhatOthersRead) {
  expect_unchanged(
      fuse_activation,
      net_without_v("%a: {T} = Conv(%x, %w) {C}\n%y: {T} = Relu(%a)\n%z: {T} = Add(%a, %y)\noutput %z"));
  expect_unchanged(fuse_activation,
                   net_without_v("%a: {T} = Conv(%x, %w) {C}\n%y: {T} = Relu(%a)\noutput %y\noutput %a"));
}

TEST(FuseActivation, OnlyOneAndOnlyKnownOnes) {
  expect_unchanged(fuse_activation, net_without_v("%a: {T} = Conv(%x, %w) " + conv_act("relu") +
                                                  "\n%y: {T} = Tanh(%a)\noutput %y"));
  expect_unchanged(fuse_activation,
                   net_without_v("%a: {T} = Conv(%x, %w) {C}\n%y: {T} = Softsign(%a)\noutput %y"));
}

TEST(FuseResidual, IntoTheConvAndThenItsActivation) {
  const std::string before =
      net_without_v("%a: {T} = Conv(%x, %w) {C}\n%s: {T} = Add(%x, %a)\n%y: {T} = Relu(%s)\noutput %y");
  expect_rewrite(fuse_residual, before,
                 net_without_v("%a: {T} = Conv(%x, %w, _, %x) {C}\n%y: {T} = Relu(%a)\noutput %y"));
  expect_rewrite(
      [](Graph& g) {
        LIMBER_TRY(fuse_residual(g));
        return fuse_activation(g);
      },
      before, net_without_v("%a: {T} = Conv(%x, %w, _, %x) " + conv_act("relu") + "\noutput %a as \"y\""));
}

TEST(FuseResidual, OfTwoConvolutionsTheLaterOneTakesIt) {
  expect_rewrite(
      fuse_residual,
      net("%a: {T} = Conv(%x, %w) {C}\n%b: {T} = Conv(%x, %v) {C}\n%y: {T} = Add(%a, %b)\noutput %y"),
      net("%a: {T} = Conv(%x, %w) {C}\n%b: {T} = Conv(%x, %v, _, %a) {C}\noutput %b as \"y\""));
}

TEST(FuseResidual, TheOtherOperandIsComputedFirst) {
  // The shortcut is written after the convolution that takes it.
  expect_rewrite(
      fuse_residual,
      net_without_v("%a: {T} = Conv(%x, %w) {C}\n%b: {T} = Sigmoid(%x)\n%y: {T} = Add(%a, %b)\noutput %y"),
      net_without_v("%b: {T} = Sigmoid(%x)\n%a: {T} = Conv(%x, %w, _, %b) {C}\noutput %a as \"y\""));
}

TEST(FuseResidual, ChainsAcrossBlocks) {
  expect_rewrite(
      fuse_residual,
      net("%a: {T} = Conv(%x, %w) {C}\n%s: {T} = Add(%a, %x)\n%b: {T} = Conv(%s, %v) {C}\n%y: {T} = Add(%b, "
          "%s)\noutput %y"),
      net("%a: {T} = Conv(%x, %w, _, %x) {C}\n%b: {T} = Conv(%a, %v, _, %a) {C}\noutput %b as \"y\""));
}

TEST(FuseResidual, KeepsWhatDoesNotFit) {
  // Read twice; the same value twice; an activation in between; another shape; a residual already.
  expect_unchanged(
      fuse_residual,
      net_without_v("%a: {T} = Conv(%x, %w) {C}\n%s: {T} = Add(%x, %a)\n%y: {T} = Mul(%s, %a)\noutput %y"));
  expect_unchanged(fuse_residual,
                   net_without_v("%a: {T} = Conv(%x, %w) {C}\n%y: {T} = Add(%a, %a)\noutput %y"));
  expect_unchanged(fuse_residual, net_without_v("%a: {T} = Conv(%x, %w) " + conv_act("relu") +
                                                "\n%y: {T} = Add(%a, %x)\noutput %y"));
  expect_unchanged(
      fuse_residual,
      net_without_v("input %z: f32[N,4,1,1]\n%a: {T} = Conv(%x, %w) {C}\n%y: {T} = Add(%a, %z)\noutput %y"));
  expect_unchanged(
      fuse_residual,
      net_without_v(
          "%z: {T} = Relu(%x)\n%a: {T} = Conv(%x, %w, _, %x) {C}\n%y: {T} = Add(%a, %z)\noutput %y"));
  expect_unchanged(fuse_residual,
                   net_without_v("%a: {T} = Conv(%x, %w) {C}\n%y: {T} = Add(%a, %x)\noutput %y\noutput %a"));
}

TEST(FuseResidual, IntoMatMul) {
  expect_rewrite(
      fuse_residual,
      "input %x: f32[N,7,4]\nparam %w: f32[4,4]\nparam %b: f32[4]\n%a: f32[N,7,4] = MatMul(%x, %w, %b)\n"
      "%y: f32[N,7,4] = Add(%x, %a)\noutput %y",
      "input %x: f32[N,7,4]\nparam %w: f32[4,4]\nparam %b: f32[4]\n%a: f32[N,7,4] = MatMul(%x, %w, %b, %x)\n"
      "output %a as \"y\"");
}

}  // namespace
}  // namespace limber
