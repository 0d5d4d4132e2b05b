#include "tests/passes/golden.h"

namespace limber {
namespace {

constexpr const char* kHead = "input %x: f32[N,4]\n";

void expect_one(std::string_view before, std::string_view op) {
  expect_rewrite(fuse_activation_patterns, kHead + std::string(before) + "\noutput %y",
                 fmt::format("{}%y: f32[N,4] = {}\noutput %y", kHead, op));
}
void expect_kept(std::string_view statements) {
  expect_unchanged(fuse_activation_patterns, kHead + std::string(statements) + "\noutput %y");
}

TEST(FuseActivationPatterns, Silu) {
  expect_one("%s: f32[N,4] = Sigmoid(%x)\n%y: f32[N,4] = Mul(%x, %s)", "Silu(%x)");
  expect_one("%s: f32[N,4] = Sigmoid(%x)\n%y: f32[N,4] = Mul(%s, %x)", "Silu(%x)");
  expect_kept("%a: f32[N,4] = Relu(%x)\n%s: f32[N,4] = Sigmoid(%a)\n%y: f32[N,4] = Mul(%x, %s)");
  expect_kept("%s: f32[N,4] = Sigmoid(%x)\n%m: f32[N,4] = Mul(%x, %s)\n%y: f32[N,4] = Add(%m, %s)");
}

TEST(FuseActivationPatterns, GateOfAnotherValueStays) {
  expect_kept(
      "%a: f32[N,1] = ReduceMean(%x) {axes=[1], keepdims=1}\n%s: f32[N,1] = Sigmoid(%a)\n%y: f32[N,4] = "
      "Mul(%x, %s)");
}

TEST(FuseActivationPatterns, Mish) {
  expect_one("%a: f32[N,4] = Softplus(%x)\n%b: f32[N,4] = Tanh(%a)\n%y: f32[N,4] = Mul(%x, %b)", "Mish(%x)");
  expect_one(
      "const %one: f32[] = {1.0}\n%e: f32[N,4] = Exp(%x)\n%s: f32[N,4] = Add(%e, %one)\n%l: f32[N,4] = "
      "Log(%s)\n"
      "%t: f32[N,4] = Tanh(%l)\n%y: f32[N,4] = Mul(%x, %t)",
      "Mish(%x)");
  expect_kept("%a: f32[N,4] = Softplus(%x)\n%b: f32[N,4] = Sigmoid(%a)\n%y: f32[N,4] = Mul(%x, %b)");
}

TEST(FuseActivationPatterns, Softplus) {
  expect_one(
      "const %one: f32[] = {1.0}\n%e: f32[N,4] = Exp(%x)\n%s: f32[N,4] = Add(%one, %e)\n%y: f32[N,4] = "
      "Log(%s)",
      "Softplus(%x)");
  expect_kept(
      "const %two: f32[] = {2.0}\n%e: f32[N,4] = Exp(%x)\n%s: f32[N,4] = Add(%two, %e)\n%y: f32[N,4] = "
      "Log(%s)");
}

TEST(FuseActivationPatterns, HardSigmoid) {
  const char* relu6 =
      "const %three: f32[] = {3.0}\nconst %six: f32[] = {6.0}\nconst %sixth: f32[] = {0.16666667}\n"
      "%a: f32[N,4] = Add(%x, %three)\n%c: f32[N,4] = Clip(%a) {max=6.0, min=0.0}\n";
  const char* hard_sigmoid = "HardSigmoid(%x) {alpha=0.16666666666666666, beta=0.5}";
  expect_one(std::string(relu6) + "%y: f32[N,4] = Div(%c, %six)", hard_sigmoid);
  expect_one(std::string(relu6) + "%y: f32[N,4] = Mul(%c, %sixth)", hard_sigmoid);
  expect_kept(
      "const %two: f32[] = {2.0}\nconst %six: f32[] = {6.0}\n%a: f32[N,4] = Add(%x, %two)\n"
      "%c: f32[N,4] = Clip(%a) {max=6.0, min=0.0}\n%y: f32[N,4] = Div(%c, %six)");
  expect_kept(
      "const %three: f32[] = {3.0}\nconst %six: f32[] = {6.0}\n%a: f32[N,4] = Add(%x, %three)\n"
      "%c: f32[N,4] = Clip(%a) {max=5.0, min=0.0}\n%y: f32[N,4] = Div(%c, %six)");
}

TEST(FuseActivationPatterns, HardSwish) {
  const char* relu6 =
      "const %three: f32[] = {3.0}\nconst %six: f32[] = {6.0}\n"
      "%a: f32[N,4] = Add(%x, %three)\n%c: f32[N,4] = Clip(%a) {max=6.0, min=0.0}\n";
  expect_one(std::string(relu6) + "%d: f32[N,4] = Div(%c, %six)\n%y: f32[N,4] = Mul(%x, %d)",
             "HardSwish(%x)");
  expect_one(std::string(relu6) + "%d: f32[N,4] = Mul(%x, %c)\n%y: f32[N,4] = Div(%d, %six)",
             "HardSwish(%x)");
  expect_one(
      "%h: f32[N,4] = HardSigmoid(%x) {alpha=0.1666666716337204, beta=0.5}\n%y: f32[N,4] = Mul(%h, %x)",
      "HardSwish(%x)");
  expect_kept("%h: f32[N,4] = HardSigmoid(%x) {alpha=0.2, beta=0.5}\n%y: f32[N,4] = Mul(%h, %x)");
}

constexpr const char* kErf =
    "const %root: f32[] = {1.4142135}\nconst %one: f32[] = {1.0}\nconst %half: f32[] = {0.5}\n"
    "%d: f32[N,4] = Div(%x, %root)\n%e: f32[N,4] = Erf(%d)\n%s: f32[N,4] = Add(%e, %one)\n";

TEST(FuseActivationPatterns, GeluInEveryOrder) {
  const std::string erf = kErf;
  const char* gelu = "Gelu(%x) {approximate=\"none\"}";
  expect_one(erf + "%m: f32[N,4] = Mul(%x, %s)\n%y: f32[N,4] = Mul(%m, %half)", gelu);  // PyTorch
  expect_one(erf + "%m: f32[N,4] = Mul(%half, %x)\n%y: f32[N,4] = Mul(%m, %s)", gelu);  // TensorFlow
  expect_one(erf + "%m: f32[N,4] = Mul(%s, %half)\n%y: f32[N,4] = Mul(%x, %m)", gelu);
  expect_one(
      "const %root: f32[] = {0.70710677}\nconst %one: f32[] = {1.0}\nconst %two: f32[] = {2.0}\n"
      "%d: f32[N,4] = Mul(%root, %x)\n%e: f32[N,4] = Erf(%d)\n%s: f32[N,4] = Add(%one, %e)\n"
      "%m: f32[N,4] = Mul(%x, %s)\n%y: f32[N,4] = Div(%m, %two)",
      gelu);
}

TEST(FuseActivationPatterns, NotQuiteGeluStays) {
  const std::string erf = kErf;
  expect_kept("const %half: f32[] = {0.5}\n" + erf.substr(0, erf.find("const %half")) +
              erf.substr(erf.find("%d:")) + "%m: f32[N,4] = Mul(%s, %s)\n%y: f32[N,4] = Mul(%m, %half)");
  expect_kept(erf + "%m: f32[N,4] = Mul(%x, %s)\n%h: f32[N,4] = Mul(%m, %half)\n%y: f32[N,4] = Add(%h, %e)");
  expect_kept(
      "const %root: f32[] = {1.5}\nconst %one: f32[] = {1.0}\nconst %half: f32[] = {0.5}\n"
      "%d: f32[N,4] = Div(%x, %root)\n%e: f32[N,4] = Erf(%d)\n%s: f32[N,4] = Add(%e, %one)\n"
      "%m: f32[N,4] = Mul(%x, %s)\n%y: f32[N,4] = Mul(%m, %half)");
}

constexpr const char* kTanhConstants =
    "const %k: f32[] = {0.7978846}\nconst %c: f32[] = {0.044715}\nconst %one: f32[] = {1.0}\nconst %half: "
    "f32[] = {0.5}\n";
constexpr const char* kTanhTail =
    "%t: f32[N,4] = Tanh(%z)\n%s: f32[N,4] = Add(%t, %one)\n%m: f32[N,4] = Mul(%x, %s)\n%y: f32[N,4] = "
    "Mul(%m, %half)";

TEST(FuseActivationPatterns, GeluWithTanh) {
  const char* gelu = "Gelu(%x) {approximate=\"tanh\"}";
  const std::string head = kTanhConstants, tail = kTanhTail;
  expect_one(head +
                 "const %three: f32[] = {3.0}\n%p: f32[N,4] = Pow(%x, %three)\n%q: f32[N,4] = Mul(%p, %c)\n"
                 "%a: f32[N,4] = Add(%x, %q)\n%z: f32[N,4] = Mul(%k, %a)\n" +
                 tail,
             gelu);
  expect_one(head +
                 "%p: f32[N,4] = Mul(%x, %x)\n%p3: f32[N,4] = Mul(%p, %x)\n%q: f32[N,4] = Mul(%p3, %c)\n"
                 "%a: f32[N,4] = Add(%q, %x)\n%z: f32[N,4] = Mul(%a, %k)\n" +
                 tail,
             gelu);
  expect_one(head +
                 "%kx: f32[N,4] = Mul(%x, %k)\n%cx: f32[N,4] = Mul(%x, %c)\n%q: f32[N,4] = Mul(%cx, %x)\n"
                 "%a: f32[N,4] = Add(%q, %one)\n%z: f32[N,4] = Mul(%kx, %a)\n" +
                 tail,
             gelu);
  expect_kept(head +
              "%p: f32[N,4] = Mul(%x, %x)\n%q: f32[N,4] = Mul(%p, %c)\n%a: f32[N,4] = Add(%x, %q)\n"
              "%z: f32[N,4] = Mul(%k, %a)\n" +
              tail);
}

TEST(FuseActivationPatterns, HalfOfXMayBeShared) {
  expect_rewrite(fuse_activation_patterns,
                 kHead + std::string(kErf) +
                     "%m: f32[N,4] = Mul(%half, %x)\n%y: f32[N,4] = Mul(%m, %s)\noutput %y\noutput %m",
                 kHead + std::string("const %half: f32[] = {0.5}\n%m: f32[N,4] = Mul(%half, %x)\n"
                                     "%y: f32[N,4] = Gelu(%x) {approximate=\"none\"}\noutput %y\noutput %m"));
}

}  // namespace
}  // namespace limber
