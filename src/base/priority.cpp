#include "base/priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>

namespace limber {

void run_in_background() { (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19); }

void run_when_idle() {
  const sched_param none{};
  if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) run_in_background();
}

double thread_cpu_seconds() {
  timespec used{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

}  // namespace limber
