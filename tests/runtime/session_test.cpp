#include <thread>

#include "tests/runtime/net.h"

namespace limber::test {
namespace {

TEST(Session, SeesParametersThatAreReplaced) {
  const Net net = make_net(kResidualNet);
  const auto session = make_session(net, cpu_backends(), {.symbols = {{"N", 1}}});
  ASSERT_TRUE(session);
  fill_inputs(*session);
  ASSERT_TRUE(session->run().ok());
  const float before = session->output(0).data<float>()[0];

  const Tensor old = *net.params->get("fb");
  Tensor bias = *Tensor::allocate(old.type());
  for (size_t i = 0; i < 10; ++i) bias.data<float>()[i] = old.data<float>()[i] + 5;
  net.params->set("fb", bias);
  ASSERT_TRUE(session->run().ok());
  EXPECT_NEAR(session->output(0).data<float>()[0], before + 5, 1e-4);
}

TEST(Session, PackedWeightsAreSharedBetweenPlans) {
  const Net net = make_net(kResidualNet);
  const auto backends = cpu_backends();
  const auto one = make_session(net, backends, {.symbols = {{"N", 1}}});
  const auto two = make_session(net, backends, {.symbols = {{"N", 1}}});
  ASSERT_TRUE(one && two);
  size_t shared = 0;
  for (const StaticStep& fixed : one->plan().statics) {
    std::vector<std::string> leaves;
    for (int leaf : fixed.leaves) leaves.push_back(one->plan().leaves[static_cast<size_t>(leaf)]);
    const uint64_t stamp = DerivedWeights::stamp(net.params->versions(leaves));
    if (const auto buffer = net.params->derived().find(fixed.key, stamp)) {
      EXPECT_GE(buffer.use_count(), 3);  // both sessions and this one
      ++shared;
    }
  }
  EXPECT_GT(shared, 0u);
}

TEST(Session, SessionsOfOnePlanRunInParallel) {
  const Net net = make_net(kResidualNet);
  auto plan = compile(net.graph, net.params, cpu_backends(), {.symbols = {{"N", 1}}});
  ASSERT_TRUE(plan.ok());
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 3; ++i) sessions.push_back(*Session::create(*plan));
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&session = *sessions[static_cast<size_t>(i)]] {
      fill_inputs(session);
      for (int run = 0; run < 5; ++run) ASSERT_TRUE(session.run().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 1; i < 3; ++i) {
    expect_close(sessions[static_cast<size_t>(i)]->output(0), sessions[0]->output(0), 0, "session");
  }
}

TEST(Session, ResultsRepeatToTheBit) {
  const Net net = make_net(kResidualNet);
  const auto session = make_session(net, cpu_backends(2), {.threads = 2, .symbols = {{"N", 2}}});
  ASSERT_TRUE(session);
  fill_inputs(*session);
  ASSERT_TRUE(session->run().ok());
  const Tensor view = session->output(0);
  const std::vector<float> first(view.data<float>().begin(), view.data<float>().end());
  for (int run = 0; run < 10; ++run) {
    ASSERT_TRUE(session->run().ok());
    ASSERT_TRUE(std::equal(first.begin(), first.end(), view.data<float>().begin()));
  }
}

TEST(Session, DetectionOutputsHaveOnlyTheirValidRows) {
  const Net net = make_net(R"(graph "g" {
    input %boxes: f32[1,3,4]
    input %scores: f32[1,1,3]
    %s: i64[3,3], %n: i64[] = NonMaxSuppression(%boxes, %scores) {iou_threshold=0.5, max_boxes=3, score_threshold=0.1}
    output %s as "selected" rows %n
  })");
  const auto session = make_session(net, cpu_backends());
  ASSERT_TRUE(session);
  const float boxes[] = {0, 0, 1, 1, 0, 0, 1, 1.05f, 5, 5, 6, 6};
  const float scores[] = {0.9f, 0.8f, 0.05f};
  std::copy(std::begin(boxes), std::end(boxes), session->input(0).data<float>().begin());
  std::copy(std::begin(scores), std::end(scores), session->input(1).data<float>().begin());
  ASSERT_TRUE(session->run().ok());
  EXPECT_EQ(session->output(0).shape(), (Shape{1, 3}));
}

TEST(Session, ProfileCoversEveryStep) {
  const auto session = make_session(make_net(kResidualNet), cpu_backends(), {.symbols = {{"N", 1}}});
  ASSERT_TRUE(session);
  const auto profile = session->profile(3);
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile->steps.size(), session->plan().steps.size());
  EXPECT_GT(profile->total_s, 0);
}

}  // namespace
}  // namespace limber::test
