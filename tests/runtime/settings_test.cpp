// What a caller may choose about a compile, and what is refused.
#include "base/parallel.h"
#include "tests/runtime/net.h"

namespace limber::test {
namespace {

using Bound = std::map<std::string, int64_t>;

constexpr std::string_view kOpen = R"(graph "open" {
  input %x: f32[N,3,height,8]
  input %z: f32[M,height]
  %y: f32[N,3,height,8] = Relu(%x)
  %w: f32[M,height] = Neg(%z)
  output %y as "y"
  output %w as "w"
})";

TEST(Settings, OpenDimensionsGetValues) {
  const Graph graph = *parse(kOpen);
  EXPECT_EQ(*bind_dimensions(graph, {.symbols = {{"height", 4}}}),
            (Bound{{"N", 1}, {"M", 1}, {"height", 4}}));
  EXPECT_EQ(*bind_dimensions(graph, {.batch = 5, .symbols = {{"height", 4}}}),
            (Bound{{"N", 5}, {"M", 5}, {"height", 4}}));
  EXPECT_EQ(*bind_dimensions(graph, {.batch = 5, .symbols = {{"M", 2}, {"height", 4}}}),
            (Bound{{"N", 5}, {"M", 2}, {"height", 4}}));
  EXPECT_EQ(*bind_dimensions(graph, {.batch = -3, .symbols = {{"height", 4}}}),
            (Bound{{"N", 1}, {"M", 1}, {"height", 4}}));
}

TEST(Settings, ValuesOfDimensionsThatAreNotThereAreLeftOut) {
  const auto bound = bind_dimensions(*parse(kOpen), {.symbols = {{"height", 4}, {"depth", 9}}});
  ASSERT_TRUE(bound.ok());
  EXPECT_FALSE(bound->contains("depth"));
}

TEST(Settings, ADimensionWithoutAValueIsNamedWithItsInput) {
  const auto bound = bind_dimensions(*parse(kOpen), {});
  ASSERT_FALSE(bound.ok());
  for (const char* part : {"'x'", "f32[N,3,height,8]", "'height'", "height=NUMBER"})
    EXPECT_NE(bound.status().message().find(part), std::string::npos) << bound.status().message();
}

TEST(Settings, DimensionsMustBePositive) {
  for (int64_t value : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    const auto bound = bind_dimensions(*parse(kOpen), {.symbols = {{"height", value}}});
    ASSERT_FALSE(bound.ok());
    EXPECT_EQ(bound.status().code(), Code::kInvalidArgument);
    EXPECT_NE(bound.status().message().find(std::to_string(value)), std::string::npos);
  }
}

TEST(Settings, NamesAreThoseOfTheGraphHoweverTheyWereWritten) {
  const Graph graph = *parse(R"(graph "g" {
    input %x: f32[2,some_long_name_]
    %y: f32[2,some_long_name_] = Relu(%x)
    output %y as "y"
  })");
  const auto bound = bind_dimensions(graph, {.symbols = {{"some long name of a dimension", 3}}});
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_EQ(*bound, (Bound{{"some_long_name_", 3}}));
}

TEST(Settings, ThreadsAreAtLeastOne) {
  EXPECT_EQ(thread_count({.threads = 3}), 3);
  EXPECT_EQ(thread_count({.threads = 0}), available_cores());
  EXPECT_EQ(thread_count({.threads = -5}), available_cores());
}

TEST(Settings, BatchSettingsBindEverythingThatIsOpen) {
  const CompileSettings settings = batch_settings(*parse(kOpen), 6, 2);
  EXPECT_EQ(settings.symbols, (Bound{{"N", 6}, {"M", 6}, {"height", 6}}));
  EXPECT_EQ(settings.threads, 2);
}

TEST(Settings, ShapesThatOverflowAreRefusedNotComputed) {
  const Net net = make_net(kOpen);
  for (int64_t value : {int64_t{1} << 40, int64_t{1} << 62, INT64_MAX}) {
    const auto plan =
        compile(net.graph, net.params, cpu_backends(), {.symbols = {{"height", value}, {"N", value}}});
    EXPECT_FALSE(plan.ok()) << value;
  }
}

TEST(Settings, ADifferentTypeOfParameterIsNamed) {
  Net net = make_net(kResidualNet);
  net.params->set("fb", *Tensor::zeros({DType::kF32, {11}}));
  const auto plan = compile(net.graph, net.params, cpu_backends(), {});
  ASSERT_FALSE(plan.ok());
  for (const char* part : {"'fb'", "f32[10]", "f32[11]"})
    EXPECT_NE(plan.status().message().find(part), std::string::npos) << plan.status().message();
}

// An assignment comes from a file of another process: nonsense may be slow, never wrong.
TEST(Settings, AnyAssignmentGivesTheSameAnswers) {
  const Net net = make_net(kResidualNet);
  const auto backends = cpu_backends();
  const auto expected = make_session(net, ref_backends(), {.optimize = false});
  fill_inputs(*expected);
  ASSERT_TRUE(expected->run().ok());
  for (int id : {0, 1, 2, 3, 4, 17, 40, 63, 64, 65, 66, 128, 6400, INT32_MAX}) {
    const auto plan = compile(net.graph, net.params, backends, {.assignment = id});
    ASSERT_TRUE(plan.ok()) << id << ": " << plan.status().message();
    EXPECT_EQ((*plan)->assignment, id);
    const auto session = *Session::create(*plan);
    fill_inputs(*session);
    ASSERT_TRUE(session->run().ok());
    expect_close(session->output(0), expected->output(0), 1e-5, "assignment " + std::to_string(id));
  }
}

TEST(Settings, AnAssignmentIsFoundAgain) {
  const Net net = make_net(kResidualNet);
  const auto backends = cpu_backends();
  const auto plan = *compile(net.graph, net.params, backends, {});
  EXPECT_EQ(*estimate_assignment(net.graph, backends, {}), plan->assignment);
  const auto again = *compile(net.graph, net.params, backends, {.assignment = plan->assignment});
  EXPECT_EQ(again->text(), plan->text());
}

TEST(Settings, WhatOneBackendCannotDoTheNextDoes) {
  expect_same_as_ref(make_net(R"(graph "holes" {
    input %x: f32[2,20,13,15]
    param %w: f32[16,20,3,3]
    %c: f32[2,16,13,15] = Conv(%x, %w) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}
    %p: f32[2,16,11,7] = MaxPool(%c) {dilations=[2,2], kernel=[3,3], pads=[1,1,1,1], strides=[1,2]}
    %m: f32[2,16,11,7] = Mod(%p, %p) {fmod=1}
    output %p as "p"
    output %m as "m"
  })"));
}

// A backend that can do nothing.
class NoBackend : public Backend {
  class Compiler : public NodeCompiler {
    bool supports(NodeId) override { return false; }
    Result<std::vector<Candidate>> candidates(NodeId, std::span<const Layout>) override {
      return unsupported("no");
    }
    Result<std::unique_ptr<Kernel>> compile(NodeId, const Candidate&) override { return unsupported("no"); }
  };

 public:
  std::string_view name() const override { return "none"; }
  std::unique_ptr<NodeCompiler> begin(const Graph&, const std::vector<bool>&) override {
    return std::make_unique<Compiler>();
  }
};

TEST(Settings, EveryNodeThatNobodySupportsIsNamed) {
  const Net net = make_net(kResidualNet);
  const auto plan = compile(net.graph, net.params, {std::make_shared<NoBackend>()}, {.optimize = false});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), Code::kUnsupported);
  for (const char* part : {"Conv(f32[1,3,32,32]", "BatchNorm", "GlobalAveragePool", "Gemm"})
    EXPECT_NE(plan.status().message().find(part), std::string::npos) << plan.status().message();
  EXPECT_TRUE(
      compile(net.graph, net.params, {std::make_shared<NoBackend>(), make_ref_backend()}, {.optimize = false})
          .ok());
}

TEST(Settings, TheTextOfAPlanHasALinePerStep) {
  const Net net = make_net(kResidualNet);
  const auto plan = *compile(net.graph, net.params, cpu_backends(), {.batch = 2});
  const std::string text = plan->text();
  EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), plan->steps.size() + 1);
  for (const std::string& part :
       {std::string("plan residual threads=1"), fmt::format("steps={}", plan->steps.size()),
        fmt::format("arena={}", plan->arena_bytes)})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace
}  // namespace limber::test
