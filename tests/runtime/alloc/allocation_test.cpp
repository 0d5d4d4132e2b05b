// After the first run, running a plan calls neither malloc nor its relatives, on any thread.
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/run_scope.h"
#include "tests/runtime/net.h"

namespace {
std::atomic<int64_t> heap_calls{0};
}

// Interposed in front of the C library's.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

__attribute__((visibility("default"))) void* malloc(size_t size) {
  heap_calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
__attribute__((visibility("default"))) void* calloc(size_t count, size_t size) {
  heap_calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
__attribute__((visibility("default"))) void* realloc(void* old, size_t size) {
  heap_calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(old, size);
}
__attribute__((visibility("default"))) void* memalign(size_t alignment, size_t size) {
  heap_calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
__attribute__((visibility("default"))) void* aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}
__attribute__((visibility("default"))) int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = memalign(alignment, size);
  return *out == nullptr ? 12 : 0;
}
}

namespace limber::test {
namespace {

constexpr std::string_view kAttentionNet = R"(graph "attention" {
  input %x: f32[1,33,24]
  param %wq: f32[24,24]
  param %wo: f32[24,48]
  param %s: f32[24]
  param %b: f32[24]
  %n: f32[1,33,24] = LayerNorm(%x, %s, %b) {axis=2, epsilon=1e-05}
  %q: f32[1,33,24] = MatMul(%n, %wq)
  %a: f32[1,33,24] = Attention(%q, %n, %x) {scale=0.2}
  %m: f32[1,33,48] = MatMul(%a, %wo)
  %g: f32[1,33,48] = Gelu(%m) {approximate="none"}
  %t: f32[1,48,33] = Transpose(%g) {perm=[0,2,1]}
  %p: f32[1,48,33] = Softmax(%t) {axis=2}
  output %p as "y"
})";

TEST(Allocation, TheCounterCounts) {
  const int64_t before = heap_calls.load();
  void* volatile block = std::malloc(100);
  std::free(block);
  EXPECT_GT(heap_calls.load(), before);
}

TEST(Allocation, TheSecondRunTouchesNoHeap) {
  for (std::string_view text : {kResidualNet, kAttentionNet}) {
    for (int threads : {1, 2}) {
      CompileSettings options;
      options.threads = threads;
      const Net net = make_net(text);
      if (text == kResidualNet) options.symbols = {{"N", 2}};
      const auto session = make_session(net, cpu_backends(threads), options);
      ASSERT_TRUE(session);
      ASSERT_TRUE(session->run().ok());
      const int64_t before = heap_calls.load();
      for (int run = 0; run < 3; ++run) ASSERT_TRUE(session->run().ok());
      EXPECT_EQ(heap_calls.load() - before, 0) << net.graph.name << " with " << threads << " threads";
    }
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
TEST(Allocation, NorDoesTheSecondUpdate) {
  const Net net = make_net(kUpdateNet);
  const auto session = make_session(net, cpu_backends(), {.optimize = false});
  ASSERT_TRUE(session);
  EXPECT_FALSE(session->plan().packed[0].empty()) << session->plan().text();
  ASSERT_TRUE(session->run().ok() && net.params->get("w").ok());
  const int64_t before = heap_calls.load();
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(session->run().ok());
  EXPECT_EQ(heap_calls.load() - before, 0);
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
  const auto session = make_session(net, cpu_backends(2), {.threads = 2, .symbols = {{"N", 1}}});
  ASSERT_TRUE(session);
  ASSERT_TRUE(session->run().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_LT(cpu_seconds() - before, 0.05);
}

}  // namespace
}  // namespace limber::test
