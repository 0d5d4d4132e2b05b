// A process that compiles for as long as it lives, from several threads.
#include <set>
#include <thread>

#include "base/memory.h"
#include "tests/runtime/net.h"

namespace limber::test {
namespace {

// A small network with `width` channels inside: what a variant of a model is.
std::string variant_text(int width) {
  return fmt::format(R"(graph "variant{0}" {{
    input %x: f32[N,3,8,8]
    param %w1.{0}: f32[{0},3,3,3]
    param %w2.{0}: f32[16,{0},1,1]
    param %fc: f32[16,4]
    %c1: f32[N,{0},8,8] = Conv(%x, %w1.{0}) {{dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}}
    %r1: f32[N,{0},8,8] = Relu(%c1)
    %c2: f32[N,16,8,8] = Conv(%r1, %w2.{0}) {{dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}}
    %p: f32[N,16,1,1] = GlobalAveragePool(%c2)
    %f: f32[N,16] = Reshape(%p) {{shape=<N,16>}}
    %y: f32[N,4] = MatMul(%f, %fc)
    output %y as "y"
  }})",
                     width);
}

// Graphs of so many variants over one set of parameters.
struct Variants {
  std::vector<Graph> graphs;
  std::shared_ptr<Parameters> params = std::make_shared<Parameters>();

  explicit Variants(int count) {
    for (int i = 0; i < count; ++i) {
      const Net net = make_net(variant_text(5 + i));
      graphs.push_back(net.graph);
      for (const std::string& name : net.params->names()) {
        if (!params->contains(name)) params->set(name, *net.params->get(name));
      }
    }
  }

  Result<std::vector<float>> run(size_t i, const std::vector<std::shared_ptr<Backend>>& backends) const {
    LIMBER_ASSIGN(auto plan, compile(graphs[i], params, backends, {}));
    LIMBER_ASSIGN(const auto session, Session::create(std::move(plan)));
    fill_inputs(*session);
    LIMBER_TRY(session->run());
    const Tensor y = session->output(0);
    return std::vector<float>(y.data<float>().begin(), y.data<float>().end());
  }
};

TEST(LongLife, ThreadsCompileWithOneBackend) {
  constexpr size_t kThreads = 4, kVariants = 8;
  const Variants variants(kVariants);
  std::vector<std::vector<float>> expected;
  for (size_t i = 0; i < kVariants; ++i) expected.push_back(*variants.run(i, cpu_backends()));
  const auto backends = cpu_backends();
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t k = 0; k < 2 * kVariants; ++k) {
        const size_t i = (k + t) % kVariants;  // some of them the same at the same time
        const auto result = variants.run(i, backends);
        ASSERT_TRUE(result.ok()) << result.status().message();
        EXPECT_EQ(*result, expected[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(LongLife, ThreadsTuneWithOneBackend) {
  const Variants variants(2);
  const auto backends = cpu_backends(1, /*tune=*/true);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] { EXPECT_TRUE(variants.run(t, backends).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
}

#ifdef LIMBER_SANITIZED
constexpr int kPlans = 250;  // slow, and freed memory is kept for a while: memory is not looked at
#else
constexpr int kPlans = 1000;
#endif

// Plans of fifty variants, a thousand: what the first two hundred left in memory is all there is.
TEST(LongLife, DroppedPlansLeaveNothing) {
  constexpr int kVariants = 50, kWarmUp = 200;
  const Variants variants(kVariants);
  const auto backends = cpu_backends();
  const auto compile_some = [&](int count) {
    for (int i = 0; i < count; ++i)
      ASSERT_TRUE(variants.run(static_cast<size_t>(i % kVariants), backends).ok());
    trim_heap();
  };
  compile_some(kWarmUp);
  [[maybe_unused]] const size_t before = process_memory().resident;
  compile_some(kPlans - kWarmUp);
#ifndef LIMBER_SANITIZED
  const size_t after = process_memory().resident;
  EXPECT_LE(static_cast<double>(after), 1.03 * static_cast<double>(before)) << before << " -> " << after;
#endif
  EXPECT_EQ(variants.params->derived().alive(), 0u);
  EXPECT_LE(variants.params->derived().size(), 400u);
}

// Layouts of weights are known while a plan uses them, however many others came and went.
TEST(LongLife, AnOldPlanStaysUsable) {
  const Variants variants(30);
  const auto backends = cpu_backends();
  const auto plan = *compile(variants.graphs[0], variants.params, backends, {});
  const std::string text = plan->text();
  const std::vector<float> expected = *variants.run(0, backends);
  for (size_t i = 1; i < 30; ++i) ASSERT_TRUE(variants.run(i, backends).ok());
  EXPECT_EQ(plan->text(), text);
  const auto session = *Session::create(plan);
  fill_inputs(*session);
  ASSERT_TRUE(session->run().ok());
  const Tensor y = session->output(0);
  EXPECT_EQ(std::vector<float>(y.data<float>().begin(), y.data<float>().end()), expected);
}

}  // namespace
}  // namespace limber::test
