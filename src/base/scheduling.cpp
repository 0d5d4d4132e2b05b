#include "base/scheduling.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace limber {
namespace {

// As the kernel has it (include/uapi/linux/sched/types.h, SCHED_ATTR_SIZE_VER0); the C library has no name
// for it.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;  // of this policy: a turn
  uint64_t deadline_ns = 0, period_ns = 0;
};

}  // namespace

// On Linux a priority belongs to a thread.
void run_in_background() { (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19); }

void run_in_short_turns() {
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;  // somebody has chosen something else for it
  attributes.size = sizeof(attributes);
  attributes.runtime_ns = 100'000;  // the least that the kernel takes
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace limber
