// What a run asks of the heap, after the first: Limber nothing; oneDNN, for every call of one of its
// primitives, a few blocks of at most heap::kSmall bytes, which it frees before it returns. (Its gemm:jit
// implementations also take a work buffer.) Sessions here, the program as it is shipped below; ./library has
// the shared library.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "base/parallel.h"
#include "tests/runtime/alloc/heap_counter.h"
#include "tests/runtime/net.h"

namespace limber::test {
namespace {

constexpr std::string_view kOwnNet = R"(graph "own" {
  input %x: f32[1,33,24]
  param %s: f32[24]
  param %b: f32[24]
  %n: f32[1,33,24] = LayerNorm(%x, %s, %b) {axis=2, epsilon=1e-05}
  %a: f32[1,33,24] = Attention(%n, %n, %x) {scale=0.2}
  %g: f32[1,33,24] = Gelu(%a) {approximate="none"}
  %t: f32[1,24,33] = Transpose(%g) {perm=[0,2,1]}
  %p: f32[1,24,33] = Softmax(%t) {axis=2}
  output %p as "y"
})";

// Of one call of a oneDNN primitive: eight with version 2.6.
constexpr int64_t kBlocksPerStep = 10;

heap::Counts of_runs(Session& session, int runs) {
  EXPECT_TRUE(session.run().ok());
  const heap::Counts before = heap::counts();
  for (int run = 0; run < runs; ++run) EXPECT_TRUE(session.run().ok());
  return heap::counts() - before;
}

int64_t library_steps(const Plan& plan) {
  return std::count_if(plan.steps.begin(), plan.steps.end(), [](const Step& s) { return s.impl != "simd"; });
}

void expect_small_and_freed(Session& session) {
  constexpr int kRuns = 3;
  const heap::Counts used = of_runs(session, kRuns);
  EXPECT_EQ(used.large, 0) << session.plan().text();
  EXPECT_EQ(used.calls, used.freed);
  EXPECT_LE(used.calls, kRuns * kBlocksPerStep * library_steps(session.plan()));
}

TEST(Allocation, TheCounterCounts) {
  const heap::Counts before = heap::counts();
  void* volatile block = std::malloc(heap::kSmall + 1);
  std::free(block);
  const heap::Counts used = heap::counts() - before;
  EXPECT_EQ(used.calls, 1);
  EXPECT_EQ(used.large, 1);
  EXPECT_EQ(used.freed, 1);
}

TEST(Allocation, OwnKernelsTouchNoHeap) {
  for (int threads : {1, 2}) {
    const auto session = make_session(make_net(kOwnNet), cpu_backends(threads), {.threads = threads});
    ASSERT_TRUE(session);
    EXPECT_EQ(library_steps(session->plan()), 0) << session->plan().text();
    EXPECT_EQ(of_runs(*session, 3).calls, 0) << threads << " threads";
  }
}

TEST(Allocation, OneDnnTakesSmallBlocksAndFreesThem) {
  for (int threads : {1, 2}) {
    const auto session =
        make_session(make_net(kResidualNet), cpu_backends(threads), {.threads = threads, .batch = 2});
    ASSERT_TRUE(session);
    expect_small_and_freed(*session);
  }
}

constexpr std::string_view kUpdateNet = R"(graph "update" {
  input %x: f32[2,20,9,9]
  input %dy: f32[2,36,9,9]
  input %rate: f32[]
  param %w: f32[36,20,3,3]
  param %v: f32[36,20,3,3]
  %y: f32[2,36,9,9] = Conv(%x, %w) {dilations=[1,1], pads=[1,1,1,1], strides=[1,1]}
  %dw: f32[36,20,3,3] = ConvBackwardWeights(%x, %dy) {dilations=[1,1], kernel=[3,3], pads=[1,1,1,1], strides=[1,1]}
  %w2: f32[36,20,3,3], %v2: f32[36,20,3,3] = SgdUpdate(%w, %dw, %rate, %v) {momentum=0.9}
  output %y as "y"
  output %w2 as "w" into %w
  output %v2 as "v" into %v
})";

// Weights that are trained stay packed: neither packing nor what others see of them costs the next run.
TEST(Allocation, TheSecondUpdateIsLikeTheSecondInference) {
  const Net net = make_net(kUpdateNet);
  const auto session = make_session(net, cpu_backends(), {.optimize = false});
  ASSERT_TRUE(session);
  EXPECT_FALSE(session->plan().packed[0].empty()) << session->plan().text();
  ASSERT_TRUE(session->run().ok() && net.params->get("w").ok());
  expect_small_and_freed(*session);
}

// Heap calls of `limber bench` with so many runs, and those of them that are large.
heap::Counts of_program(int runs) {
  const std::string command = "LD_PRELOAD=" HEAP_REPORT " " LIMBER_BINARY
                              " bench builtin:resnet8 --threads 2 --tune off --json --runs " +
                              std::to_string(runs) + " 2>&1 >/dev/null";
  std::FILE* pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  long long calls = -1, large = -1;
  char line[200];
  while (std::fgets(line, sizeof(line), pipe) != nullptr) {
    if (std::sscanf(line, "heap %lld %lld", &calls, &large) == 2) break;
  }
  EXPECT_EQ(pclose(pipe), 0) << command;
  EXPECT_GT(calls, 0) << line;
  return {calls, large, 0};
}

TEST(Allocation, TheShippedProgramKeepsTheSame) {
  constexpr int64_t kSteps = 12;  // of builtin:resnet8
  constexpr int kMore = 200;
  const heap::Counts used = of_program(100 + kMore) - of_program(100);
  EXPECT_LE(used.calls, kMore * kSteps * kBlocksPerStep);
  EXPECT_LE(used.large, 10);  // the list of times grows
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Worker threads may wait actively for a moment between two steps; an idle session costs nothing.
TEST(Allocation, AnIdleSessionBurnsNoCpu) {
  const Net net = make_net(kResidualNet);
  const auto session = make_session(net, cpu_backends(2), {.threads = 2});
  ASSERT_TRUE(session);
  ASSERT_TRUE(session->run().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_LT(cpu_seconds() - before, 0.05);
}

}  // namespace
}  // namespace limber::test
