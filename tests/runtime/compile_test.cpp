#include "tests/runtime/net.h"

namespace limber::test {
namespace {

TEST(Compile, ResidualNetGivesTheSameAsRefForSeveralBatchesAndThreads) {
  const Net net = make_net(kResidualNet);
  for (int64_t batch : {1, 3}) {
    for (int threads : {1, 2}) expect_same_as_ref(net, {.threads = threads, .symbols = {{"N", batch}}});
  }
}

TEST(Compile, TunedChoicesGiveTheSameAsRef) {
  expect_same_as_ref(make_net(kResidualNet), {.symbols = {{"N", 1}}}, /*tune=*/true);
}

TEST(Compile, FusesEverythingIntoTheConvolutions) {
  const Net net = make_net(kResidualNet);
  const auto session = make_session(net, cpu_backends(), {.symbols = {{"N", 1}}});
  ASSERT_TRUE(session);
  for (const Step& step : session->plan().steps) {
    EXPECT_NE(step.op, "BatchNorm");
    EXPECT_NE(step.op, "Relu");
    EXPECT_NE(step.op, "Clip");
  }
}

TEST(Compile, EveryReorderHasAReason) {
  const auto session = make_session(make_net(kResidualNet), cpu_backends(), {.symbols = {{"N", 2}}});
  ASSERT_TRUE(session);
  for (const Step& step : session->plan().steps) {
    if (step.node == kNoNode) {
      EXPECT_FALSE(step.reason.empty()) << step.name;
    }
  }
}

TEST(Compile, ArenaIsWithinFivePercentOfTheLargestLiveSet) {
  const auto session = make_session(make_net(kResidualNet), cpu_backends(), {.symbols = {{"N", 4}}});
  ASSERT_TRUE(session);
  const Plan& plan = session->plan();
  EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.05 * static_cast<double>(plan.live_bytes));
}

// The residual is read again after the convolution that adds into it: it must be copied first.
TEST(Compile, AResidualThatIsReadAgainKeepsItsValue) {
  expect_same_as_ref(make_net(R"(graph "g" {
    input %x: f32[1,16,8,8]
    param %w: f32[16,16,3,3]
    %a: f32[1,16,8,8] = Conv(%x, %w) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}
    %b: f32[1,16,8,8] = Conv(%a, %w) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}
    %c: f32[1,16,8,8] = Add(%b, %a)
    %d: f32[1,16,8,8] = Mul(%c, %a)
    output %d as "y"
    output %a as "a"
  })"));
}

TEST(Compile, AnInputOrConstantMayBeAnOutput) {
  expect_same_as_ref(make_net(R"(graph "g" {
    input %x: f32[2,3]
    const %c: f32[2] = {1.5, 2.5}
    %y: f32[3,2] = Reshape(%x) {shape=<3,2>}
    output %x as "same"
    output %c as "constant"
    output %y as "view"
  })"));
}

TEST(Compile, InPlaceChainsDoNotOverwriteInputs) {
  const Net net = make_net(R"(graph "g" {
    input %x: f32[64]
    %a: f32[64] = Neg(%x)
    %b: f32[64] = Exp(%a)
    %c: f32[64] = Add(%b, %x)
    %d: f32[64] = Mul(%c, %c)
    output %d as "y"
  })");
  expect_same_as_ref(net);
}

TEST(Compile, TransposesBetweenFormatsAreRight) {
  expect_same_as_ref(make_net(R"(graph "g" {
    input %x: f32[2,16,8,8]
    param %w: f32[24,16,1,1]
    param %s: f32[24]
    param %b: f32[24]
    %a: f32[2,24,8,8] = Conv(%x, %w) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}
    %t: f32[2,8,8,24] = Transpose(%a) {perm=[0,2,3,1]}
    %l: f32[2,8,8,24] = LayerNorm(%t, %s, %b) {axis=3, epsilon=1e-05}
    %u: f32[2,24,8,8] = Transpose(%l) {perm=[0,3,1,2]}
    %c: f32[2,24,4,4] = MaxPool(%u) {dilations=[1,1], kernel=[2,2], pads=[0,0,0,0], strides=[2,2]}
    output %c as "y"
  })"));
}

// Squeeze-excite, concat, slice and pad in whatever format the convolutions like; 20 channels are not a
// whole number of blocks.
TEST(Compile, PartialBlocksStayCorrect) {
  expect_same_as_ref(make_net(R"(graph "g" {
    input %x: f32[2,20,8,8]
    param %w1: f32[20,20,3,3]
    param %w2: f32[20,20,1,1]
    %a: f32[2,20,8,8] = Conv(%x, %w1) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}
    %s: f32[2,20,8,8] = Sigmoid(%a)
    %g: f32[2,20,1,1] = GlobalAveragePool(%s)
    %h: f32[2,20,1,1] = Conv(%g, %w2) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}
    %i: f32[2,20,1,1] = HardSigmoid(%h) {alpha=0.2, beta=0.5}
    %m: f32[2,20,8,8] = Mul(%s, %i)
    %n: f32[2,40,8,8] = Concat(%m, %a) {axis=1}
    %o: f32[2,40,4,4] = Slice(%n) {axes=[2,3], ends=[9223372036854775807,9223372036854775807], starts=[0,0], steps=[2,2]}
    %p: f32[2,48,4,4] = Pad(%o) {mode="constant", pads=[0,4,0,0,0,4,0,0], value=0.0}
    %q: f32[2,48,4,4] = Exp(%p)
    %r: f32[2,48,2,2] = AveragePool(%q) {count_include_pad=1, kernel=[3,3], pads=[1,1,1,1], strides=[2,2]}
    output %r as "y"
    output %m as "m"
  })"));
}

TEST(Compile, UnboundSymbolsAreNamed) {
  const Net net = make_net(R"(graph "open" {
    input %x: f32[N,3,height,8]
    %y: f32[N,3,height,8] = Relu(%x)
    output %y as "y"
  })");
  const auto plan = compile(net.graph, net.params, cpu_backends(), {.batch = 2});
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.status().message().find("'height'"), std::string::npos) << plan.status().message();
  EXPECT_TRUE(compile(net.graph, net.params, cpu_backends(), {.symbols = {{"height", 4}}}).ok());
}

TEST(Compile, OpenFirstDimensionsAreTheBatch) {
  const Net net = make_net(kResidualNet);
  const auto rows = [&](const CompileSettings& settings) {
    return make_session(net, cpu_backends(), settings)->output(0).shape().dim(0);
  };
  EXPECT_EQ(rows({}), 1);
  EXPECT_EQ(rows({.batch = 0}), 1);
  EXPECT_EQ(rows({.batch = 3}), 3);
  EXPECT_EQ(rows({.batch = 3, .symbols = {{"N", 2}}}), 2);
  EXPECT_EQ(rows(batch_settings(net.graph, 5, 1)), 5);
}

TEST(Compile, AMissingParameterIsNamed) {
  Net net = make_net(kResidualNet);
  net.params = std::make_shared<Parameters>();
  const auto plan = compile(net.graph, net.params, cpu_backends(), {.symbols = {{"N", 1}}});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), Code::kNotFound);
}

TEST(Compile, AHostileBatchIsRefused) {
  const Net net = make_net(kResidualNet);
  const auto plan = compile(net.graph, net.params, cpu_backends(), {.symbols = {{"N", int64_t{1} << 40}}});
  ASSERT_FALSE(plan.ok());
}

}  // namespace
}  // namespace limber::test
