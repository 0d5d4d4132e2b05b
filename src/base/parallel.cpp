#include "base/parallel.h"

#include <omp.h>
#include <sched.h>

#include <algorithm>

#if defined(__SANITIZE_THREAD__)
// libgomp synchronises with futexes that ThreadSanitizer does not see: tell it where the fork and
// the join are.
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#define LIMBER_TSAN_ACQUIRE(p) __tsan_acquire(p)
#define LIMBER_TSAN_RELEASE(p) __tsan_release(p)
#else
#define LIMBER_TSAN_ACQUIRE(p) static_cast<void>(p)
#define LIMBER_TSAN_RELEASE(p) static_cast<void>(p)
#endif

namespace limber {

int max_threads() { return omp_get_max_threads(); }

int available_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

ThreadScope::ThreadScope(int threads) : previous_(omp_get_max_threads()) {
  omp_set_num_threads(std::max(1, threads));
}

ThreadScope::~ThreadScope() { omp_set_num_threads(previous_); }

namespace detail {

void parallel_range(int64_t count, int64_t grain, RangeFn fn, const void* context) {
  if (count <= 0) return;
  grain = std::max<int64_t>(1, grain);
  const int64_t useful = std::max<int64_t>(1, count / grain);
  const int threads = static_cast<int>(std::min<int64_t>(useful, omp_in_parallel() ? 1 : max_threads()));
  if (threads <= 1) return fn(context, 0, count);

  struct Job {
    int64_t count, chunk;
    RangeFn fn;
    const void* context;
    char fork, join;
  } job{count, (count + threads - 1) / threads, fn, context, 0, 0};
  Job* shared = &job;
  LIMBER_TSAN_RELEASE(&shared->fork);
  // Always the full team: libgomp keeps one team and would build another for a smaller one.
#pragma omp parallel firstprivate(shared)
  {
    LIMBER_TSAN_ACQUIRE(&shared->fork);
    // The team may be smaller than asked for (a thread limit), never the ranges fewer.
    const int64_t step = omp_get_num_threads() * shared->chunk;
    for (int64_t begin = omp_get_thread_num() * shared->chunk; begin < shared->count; begin += step) {
      shared->fn(shared->context, begin, std::min(shared->count, begin + shared->chunk));
    }
    LIMBER_TSAN_RELEASE(&shared->join);
  }
  LIMBER_TSAN_ACQUIRE(&shared->join);
}

}  // namespace detail
}  // namespace limber
