// Data parallelism for kernels. Uses the OpenMP pool that oneDNN uses too, so that the two never
// fight over cores. Thread count is a property of the calling thread (see ThreadScope).
#pragma once

#include <cstdint>
#include <type_traits>

namespace limber {

// Threads that parallel_for may use when called from this thread.
int max_threads();
// Cores this process may run on.
int available_cores();

// While alive, parallel work started by this thread uses `threads` threads (at least 1).
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int previous_;
};

namespace detail {
using RangeFn = void (*)(const void* context, int64_t begin, int64_t end);
void parallel_range(int64_t count, int64_t grain, RangeFn fn, const void* context);
}  // namespace detail

// Calls body(begin, end) on disjoint ranges that cover [0, count); no range but the last is shorter
// than `grain`. Runs inline when one thread is enough. The split depends only on count, grain and
// the thread count, so results repeat. Allocates nothing. body must not throw.
template <typename Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  detail::parallel_range(
      count, grain,
      [](const void* context, int64_t begin, int64_t end) {
        (*static_cast<const std::remove_reference_t<Body>*>(context))(begin, end);
      },
      &body);
}

}  // namespace limber
