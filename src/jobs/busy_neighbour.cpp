#include "jobs/busy_neighbour.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace limber {
namespace {

// All that a child does. It is a copy of a process with many threads of which it has one, so it may call
// nothing that takes a lock: no memory is allocated here.
[[noreturn]] void live_beside(pid_t parent, int core) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);  // it ended before it could be watched
  // Ctrl-C reaches it too; whoever made it ends it.
  (void)signal(SIGINT, SIG_IGN);
  (void)signal(SIGTERM, SIG_DFL);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  (void)sched_setaffinity(0, sizeof(set), &set);
  (void)raise(SIGSTOP);
  for (volatile uint64_t work = 0;;) work = work + 1;
}

}  // namespace

Result<BusyNeighbour> BusyNeighbour::make() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return error(Code::kIo, "cannot tell which cores there are: {}", std::strerror(errno));
  BusyNeighbour made;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<size_t>(core), &set)) LIMBER_TRY(made.add(core));
  }
  return made;
}

// Returns when the process sleeps: a signal to wake it would be lost before that.
Status BusyNeighbour::add(int core) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return error(Code::kIo, "cannot start a process: {}", std::strerror(errno));
  if (child == 0) live_beside(parent, core);
  processes_.push_back(child);
  int status = 0;
  while (waitpid(child, &status, WUNTRACED) < 0) {
    if (errno != EINTR) return error(Code::kIo, "cannot wait for a process: {}", std::strerror(errno));
  }
  if (WIFSTOPPED(status)) return {};
  processes_.pop_back();  // it is gone, and its number may be another's soon
  return error(Code::kIo, "a process that was started ended at once");
}

BusyNeighbour::~BusyNeighbour() {
  signal_all(SIGKILL);
  for (const pid_t process : processes_) {
    while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

void BusyNeighbour::wake() { signal_all(SIGCONT); }
void BusyNeighbour::sleep() { signal_all(SIGSTOP); }

void BusyNeighbour::signal_all(int signal) const {
  for (const pid_t process : processes_) (void)kill(process, signal);
}

}  // namespace limber
