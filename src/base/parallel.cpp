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
#define LIMBER_UNSEEN __attribute__((no_sanitize_thread))
#else
#define LIMBER_TSAN_ACQUIRE(p) static_cast<void>(p)
#define LIMBER_TSAN_RELEASE(p) static_cast<void>(p)
#define LIMBER_UNSEEN
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
namespace {

struct Job {
  int64_t count, chunk;
  RangeFn fn;
  const void* context;
  char fork, join;
};

// The part of one thread. The team may be smaller than asked for (a thread limit), never the ranges fewer.
void run_share(Job& job) {
  LIMBER_TSAN_ACQUIRE(&job.fork);
  const int64_t step = omp_get_num_threads() * job.chunk;
  for (int64_t begin = omp_get_thread_num() * job.chunk; begin < job.count; begin += step) {
    job.fn(job.context, begin, std::min(job.count, begin + job.chunk));
  }
  LIMBER_TSAN_RELEASE(&job.join);
}

// Always the full team: libgomp keeps one team and would build another for a smaller one.
LIMBER_UNSEEN void fork_and_join(Job* job) {
#pragma omp parallel firstprivate(job)
  run_share(*job);
}

}  // namespace

void parallel_range(int64_t count, int64_t grain, RangeFn fn, const void* context) {
  if (count <= 0) return;
  grain = std::max<int64_t>(1, grain);
  const int64_t useful = std::max<int64_t>(1, count / grain);
  const int threads = static_cast<int>(std::min<int64_t>(useful, omp_in_parallel() ? 1 : max_threads()));
  if (threads <= 1) return fn(context, 0, count);

  Job job{count, (count + threads - 1) / threads, fn, context, 0, 0};
  LIMBER_TSAN_RELEASE(&job.fork);
  fork_and_join(&job);
  LIMBER_TSAN_ACQUIRE(&job.join);
}

}  // namespace detail
}  // namespace limber
