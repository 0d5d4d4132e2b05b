#include "train/head.h"

#include <gtest/gtest.h>

#include "tests/train/training_case.h"
#include "train/init.h"
#include "train/select.h"

namespace limber::test {
namespace {

constexpr std::string_view kMatMulNet = R"(graph "m" {
  input %x: f32[N,8]
  param %w: f32[8,10]
  param %b: f32[1,10]
  %m: f32[N,10] = MatMul(%x, %w)
  %a: f32[N,10] = Add(%b, %m)
  %y: f32[N,10] = Softmax(%a) {axis=1}
  output %y as "p"
}
)";
constexpr std::string_view kConvNet = R"(graph "c" {
  input %x: f32[N,8,4,4]
  param %w: f32[10,8,1,1]
  param %b: f32[10]
  %c: f32[N,10,4,4] = Conv(%x, %w, %b) {dilations=[1,1], pads=[0,0,0,0], strides=[1,1]}
  %r: f32[N,10,4,4] = Relu(%c)
  %p: f32[N,10,1,1] = GlobalAveragePool(%r)
  %y: f32[N,10] = Reshape(%p) {shape=<N,10>}
  output %y as "y"
}
)";

std::string shape_of(const Parameters& params, const char* name) {
  return params.get(name)->type().to_string();
}

TEST(Head, EveryKindIsReplaced) {
  struct Case {
    std::string_view text;
    const char *weight, *bias, *weight_type, *bias_type;
  };
  for (const Case& c : {Case{kTinyNet, "fc.w", "fc.b", "f32[3,8]", "f32[3]"},
                        Case{kMatMulNet, "w", "b", "f32[8,3]", "f32[1,3]"},
                        Case{kConvNet, "w", "b", "f32[3,8,1,1]", "f32[3]"}}) {
    Net net = make_net(c.text);
    const Status status = replace_head(net.graph, *net.params, 3, 5);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(net.graph.type(net.graph.outputs()[0].value).to_string(), "f32[N,3]");
    EXPECT_EQ(shape_of(*net.params, c.weight), c.weight_type);
    EXPECT_EQ(shape_of(*net.params, c.bias), c.bias_type);
    const Tensor weight = *net.params->get(c.weight);
    const double bound = 1 / std::sqrt(8.0);
    for (const float x : weight.data<float>()) EXPECT_LE(std::abs(x), bound);
    Net again = make_net(c.text);
    ASSERT_TRUE(replace_head(again.graph, *again.params, 3, 5).ok());
    EXPECT_EQ(bytes_of(*net.params), bytes_of(*again.params));
    EXPECT_TRUE(compile(net.graph, net.params, cpu_backends(), {.symbols = {{"N", 2}}}).ok());
  }
}

TEST(Head, OtherEndingsAreNamedAndNothingChanges) {
  Net net = make_net(kTinyNet);
  net.graph.mutable_outputs()[0].value =
      *emit(net.graph, OpKind::kTanh, {*net.graph.find("y")}, {}, "squash");
  const std::string before = print(net.graph);
  const Status status = replace_head(net.graph, *net.params, 3, 5);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(status.message().find("Tanh 'squash'"), std::string::npos) << status.message();
  EXPECT_EQ(print(net.graph), before);
  EXPECT_EQ(shape_of(*net.params, "fc.w"), "f32[10,8]");
  EXPECT_FALSE(replace_head(net.graph, *net.params, 1, 5).ok());
}

TEST(Init, EveryParameterGetsWhatItsUseAsksFor) {
  Net net = make_net(kTinyNet);
  const auto count = initialise(net.graph, *net.params, 1);
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, 7);
  const auto all = [&](const char* name, float want) {
    const Tensor tensor = *net.params->get(name);
    for (const float x : tensor.data<float>()) EXPECT_EQ(x, want) << name;
  };
  all("norm.s", 1);
  all("norm.b", 0);
  all("norm.mean", 0);
  all("norm.var", 1);
  all("fc.b", 0);
  double squares = 0;
  const Tensor weight = *net.params->get("conv.w");
  for (const float x : weight.data<float>()) squares += static_cast<double>(x) * x;
  EXPECT_NEAR(squares / static_cast<double>(weight.elements()), 2.0 / 27, 0.02);
}

TEST(Select, Patterns) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("fc.*", "fc.weight"));
  EXPECT_TRUE(matches("*.bias", "a.b.bias"));
  EXPECT_TRUE(matches("l?yer*b*s", "layer1.bias"));
  EXPECT_FALSE(matches("fc", "fc.weight"));
  EXPECT_FALSE(matches("*.bias", "bias"));
  EXPECT_FALSE(matches("a*b", "abc"));
  const std::vector<std::string> names = {"a.w", "a.b", "fc.w", "fc.b"};
  EXPECT_EQ(*select_parameters(names, {}, {}), names);
  EXPECT_EQ(*select_parameters(names, {"fc.*"}, {}), (std::vector<std::string>{"fc.w", "fc.b"}));
  EXPECT_EQ(*select_parameters(names, {}, {"*.b"}), (std::vector<std::string>{"a.w", "fc.w"}));
  expect_failure(select_parameters(names, {"fc.*"}, {"fc.*"}), Code::kInvalidArgument,
                 {"leave no parameter"});
  expect_failure(select_parameters(names, {}, {"x"}), Code::kInvalidArgument, {"'x'", "a.w, a.b"});
}

}  // namespace
}  // namespace limber::test
