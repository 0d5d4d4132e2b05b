// What a session promises between two runs: letting go and coming back, times of its steps, weights that
// change.
#include <numeric>

#include "tests/runtime/net.h"

namespace limber::test {
namespace {

std::vector<float> values(const Tensor& tensor) {
  return {tensor.data<float>().begin(), tensor.data<float>().end()};
}

// The bytes of packed and folded weights that are alive.
size_t derived(const Net& net) { return net.params->derived().alive(); }

TEST(SessionLife, ASuspendedSessionHoldsNoWeightsAndComesBack) {
  const Net net = make_net(kResidualNet);
  const auto session = make_session(net, cpu_backends());
  ASSERT_TRUE(session);
  fill_inputs(*session);
  ASSERT_TRUE(session->run().ok());
  const std::vector<float> before = values(session->output(0));
  EXPECT_GT(derived(net), 0u);
  session->suspend();
  EXPECT_EQ(derived(net), 0u);
  EXPECT_EQ(values(session->output(0)), before) << "outputs stay";
  session->suspend();  // twice is once
  ASSERT_TRUE(session->resume().ok());
  EXPECT_GT(derived(net), 0u);
  ASSERT_TRUE(session->run().ok());
  EXPECT_EQ(values(session->output(0)), before);
  session->suspend();
  ASSERT_TRUE(session->run().ok());  // resumes by itself
  EXPECT_EQ(values(session->output(0)), before);
}

TEST(SessionLife, WhatChangedWhileASessionSleptIsSeen) {
  const Net net = make_net(kResidualNet);
  const auto session = make_session(net, cpu_backends());
  fill_inputs(*session);
  ASSERT_TRUE(session->run().ok());
  const std::vector<float> before = values(session->output(0));
  session->suspend();
  Tensor bias = *net.params->get("fb")->copy();
  for (float& b : bias.data<float>()) b += 3;
  net.params->set("fb", bias);
  ASSERT_TRUE(session->run().ok());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(values(session->output(0))[i], before[i] + 3, 1e-4);
}

TEST(SessionLife, ASuspendedSessionTakesWhatAnotherHolds) {
  const Net net = make_net(kResidualNet);
  const auto backends = cpu_backends();
  const auto one = make_session(net, backends), two = make_session(net, backends);
  const size_t shared = derived(net);
  one->suspend();
  EXPECT_EQ(derived(net), shared) << "the other one still needs it";
  ASSERT_TRUE(one->resume().ok());
  EXPECT_EQ(derived(net), shared);
}

TEST(SessionLife, TimesOfStepsAreOnePerStepAndPositive) {
  const auto session = make_session(make_net(kResidualNet), cpu_backends());
  std::vector<double> seconds(99, -1.0);  // whatever was in it
  ASSERT_TRUE(session->run_timed(seconds).ok());
  EXPECT_EQ(seconds.size(), session->plan().steps.size());
  for (double s : seconds) EXPECT_GE(s, 0);
  EXPECT_GT(std::accumulate(seconds.begin(), seconds.end(), 0.0), 0);
}

TEST(SessionLife, ATimedRunComputesTheSame) {
  const Net net = make_net(kResidualNet);
  const auto plain = make_session(net, cpu_backends()), timed = make_session(net, cpu_backends());
  fill_inputs(*plain);
  fill_inputs(*timed);
  std::vector<double> seconds;
  ASSERT_TRUE(plain->run().ok() && timed->run_timed(seconds).ok());
  EXPECT_EQ(values(plain->output(0)), values(timed->output(0)));
}

TEST(SessionLife, AProfileNamesItsSteps) {
  const auto session = make_session(make_net(kResidualNet), cpu_backends());
  const auto profile = session->profile(4);
  ASSERT_TRUE(profile.ok());
  ASSERT_EQ(profile->steps.size(), session->plan().steps.size());
  for (size_t i = 0; i < profile->steps.size(); ++i) {
    EXPECT_EQ(profile->steps[i].step, &session->plan().steps[i]);
    EXPECT_LE(profile->steps[i].min_s, profile->steps[i].median_s);
  }
}

// A number is added to all weights, which a convolution reads packed: 20 and 36 channels are no whole blocks.
constexpr std::string_view kDrift = R"(graph "drift" {
  input %x: f32[2,20,9,9]
  input %by: f32[]
  param %w: f32[36,20,3,3]
  param %v: f32[8,36,1,1]
  %c: f32[2,36,9,9] = Conv(%x, %w) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}
  %r: f32[2,36,9,9] = Relu(%c)
  %y: f32[2,8,9,9] = Conv(%r, %v) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}
  %w2: f32[36,20,3,3] = Add(%w, %by)
  output %y as "y"
  output %w2 as "w" into %w
})";

void expect_same_training(std::string_view text, int steps) {
  const Net fast = make_net(text), slow = make_net(text);
  const auto one = make_session(fast, cpu_backends(), {.optimize = false});
  const auto two = make_session(slow, ref_backends(), {.optimize = false});
  ASSERT_TRUE(one && two);
  for (Session* session : {one.get(), two.get()}) {
    fill_inputs(*session);
    for (size_t i = 0; i < session->plan().input_slots.size(); ++i)
      if (session->input(i).shape().rank() == 0) session->input(i).data<float>()[0] = 0.01f;
  }
  for (int step = 0; step < steps; ++step) {
    ASSERT_TRUE(one->run().ok() && two->run().ok());
    expect_close(one->output(0), two->output(0), 1e-4,
                 "step " + std::to_string(step) + "\n" + one->plan().text());
  }
  for (const std::string& name : fast.params->names())
    expect_close(*fast.params->get(name), *slow.params->get(name), 1e-4, name);
}

TEST(SessionLife, UpdatesOfPackedWeightsAreThoseOfPlainOnes) {
  expect_same_training(kDrift, 4);
  expect_same_training(R"(graph "momentum" {
    input %x: f32[2,20,9,9]
    input %dy: f32[2,36,9,9]
    input %rate: f32[]
    param %w: f32[36,20,3,3]
    param %m: f32[36,20,3,3]
    %y: f32[2,36,9,9] = Conv(%x, %w) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}
    %dw: f32[36,20,3,3] = ConvBackwardWeights(%x, %dy) {dilations=[1,1], groups=1, kernel=[3,3], pads=[1,1,1,1], strides=[1,1]}
    %half: f32[36,20,3,3] = Mul(%dw, %rate)
    %w2: f32[36,20,3,3], %m2: f32[36,20,3,3] = SgdUpdate(%w, %half, %rate, %m) {momentum=0.9}
    output %y as "y"
    output %w2 as "w" into %w
    output %m2 as "m" into %m
  })",
                       4);
}

// Whoever shares the working set must learn of every update, also of those that were only timed.
TEST(SessionLife, EveryRunThatUpdatesIsAnnounced) {
  const Net net = make_net(kDrift);
  const auto session = make_session(net, cpu_backends(), {.optimize = false});
  fill_inputs(*session);
  const auto reader = make_session({*parse(R"(graph "reader" {
    input %x: f32[2,20,9,9]
    param %w: f32[36,20,3,3]
    %c: f32[2,36,9,9] = Conv(%x, %w) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}
    output %c as "y"
  })"),
                                    net.params},
                                   cpu_backends(), {.optimize = false});
  fill_inputs(*reader);
  const auto now = [&] {
    EXPECT_TRUE(reader->run().ok());
    return values(reader->output(0));
  };
  const auto weights = [&] { return net.params->versions(std::vector<std::string>{"w"})[0]; };
  session->input(1).data<float>()[0] = 0.5f;
  ASSERT_TRUE(session->run().ok());
  const auto first = now();
  std::vector<double> seconds;
  uint64_t version = weights();
  ASSERT_TRUE(session->run_timed(seconds).ok());
  EXPECT_GT(weights(), version);
  EXPECT_NE(now(), first);
  version = weights();
  ASSERT_TRUE(session->profile(3).ok());
  EXPECT_GE(weights(), version + 7) << "one to warm up, three as they are, three with a clock";
}

TEST(SessionLife, InputsStartAtZeroAndKeepWhatTheyWereGiven) {
  const Net net = make_net(kResidualNet);
  const auto session = make_session(net, cpu_backends());
  for (float x : session->input(0).data<float>()) ASSERT_EQ(x, 0);
  fill_inputs(*session);
  const std::vector<float> given = values(session->input(0));
  ASSERT_TRUE(session->run().ok() && session->run().ok());
  EXPECT_EQ(values(session->input(0)), given);
}

}  // namespace
}  // namespace limber::test
