#include "base/turns.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace limber::test {
namespace {

// One thread for each; participant i takes rounds[i] turns.
std::string order_of(Turns& turns, const std::vector<int>& rounds, std::chrono::milliseconds each = {}) {
  std::string order;  // without a lock: only one is on
  std::vector<std::thread> threads;
  for (size_t i = 0; i < rounds.size(); ++i) {
    threads.emplace_back([&, i] {
      turns.join(i);
      for (int round = 0; round < rounds[i]; ++round) {
        if (round > 0) turns.pass(i);
        order += static_cast<char>('a' + i);
        std::this_thread::sleep_for(each);
      }
      turns.leave(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return order;
}

TEST(Turns, GoRoundAmongThoseThatAreLeft) {
  Turns alone(1), all(3), some(3);
  EXPECT_EQ(order_of(alone, {3}), "aaa");
  EXPECT_EQ(order_of(all, {2, 2, 2}), "abcabc");
  EXPECT_EQ(order_of(some, {4, 1, 2}), "abcacaa");
}

TEST(Turns, CountTheTimeOfEachByItself) {
  Turns turns(2);
  const auto start = std::chrono::steady_clock::now();
  order_of(turns, {3, 1}, std::chrono::milliseconds(20));
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - start;
  EXPECT_GE(turns.seconds(0), 0.06);
  EXPECT_GE(turns.seconds(1), 0.02);
  EXPECT_LE(turns.seconds(0) + turns.seconds(1), all.count());
}

}  // namespace
}  // namespace limber::test
