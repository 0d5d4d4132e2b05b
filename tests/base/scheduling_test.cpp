#include "base/scheduling.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

namespace limber {
namespace {

// Nanoseconds of a turn; 0 where the kernel does not tell. The field lies behind two words of 4 bytes, one of
// 8 and two of 4.
uint64_t turn_ns() {
  std::array<unsigned char, 48> attributes{};
  if (syscall(SYS_sched_getattr, 0, attributes.data(), attributes.size(), 0) != 0) return 0;
  uint64_t turn = 0;
  std::memcpy(&turn, attributes.data() + 24, sizeof(turn));
  return turn;
}

int priority() { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); }

TEST(Scheduling, ShortTurnsChangeNothingElse) {
  std::thread([] {
    const int nice = priority(), policy = sched_getscheduler(0);
    const uint64_t before = turn_ns();
    run_in_short_turns();
    EXPECT_EQ(priority(), nice);
    EXPECT_EQ(sched_getscheduler(0), policy);
    EXPECT_EQ(turn_ns(), before > 0 ? 100'000U : 0U);
    std::thread([&] { EXPECT_EQ(turn_ns(), before > 0 ? 100'000U : 0U); }).join();  // those it starts
  }).join();
}

TEST(Scheduling, TheBackgroundIsOfOneThreadAlone) {
  const int nice = priority();
  std::thread([] {
    run_in_background();
    EXPECT_EQ(priority(), 19);
  }).join();
  EXPECT_EQ(priority(), nice);
}

}  // namespace
}  // namespace limber
