#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace limber {
namespace {

TEST(Parallel, EveryIndexExactlyOnce) {
  for (int threads : {1, 2, 3, 4, 7}) {
    const ThreadScope scope(threads);
    for (int64_t count : {0, 1, 2, 3, 10, 97, 1000}) {
      for (int64_t grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
        parallel_for(count, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) hits[static_cast<size_t>(i)].fetch_add(1);
        });
        for (const auto& hit : hits) EXPECT_EQ(hit.load(), 1) << threads << " " << count << " " << grain;
      }
    }
  }
}

TEST(Parallel, RangesAreNotShorterThanTheGrain) {
  for (int threads : {2, 4}) {
    const ThreadScope scope(threads);
    for (int64_t count : {100, 101, 130, 1000}) {
      parallel_for(count, 30, [&](int64_t begin, int64_t end) {
        EXPECT_LT(begin, end);
        if (end != count) {
          EXPECT_GE(end - begin, 30);
        }
      });
    }
  }
}

TEST(Parallel, SmallWorkRunsInline) {
  const ThreadScope scope(4);
  int calls = 0;  // not atomic: one call on this thread
  parallel_for(10, 10, [&](int64_t begin, int64_t end) {
    ++calls;
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 10);
  });
  EXPECT_EQ(calls, 1);
}

TEST(Parallel, NestedCallsRunInline) {
  const ThreadScope scope(2);
  std::atomic<int64_t> sum{0};
  parallel_for(8, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      parallel_for(10, 1, [&](int64_t b, int64_t e) { sum += e - b; });
    }
  });
  EXPECT_EQ(sum.load(), 80);
}

TEST(ThreadScope, RestoresThePreviousCount) {
  const ThreadScope outer(3);
  {
    const ThreadScope inner(1);
    EXPECT_EQ(max_threads(), 1);
  }
  EXPECT_EQ(max_threads(), 3);
  const ThreadScope nonsense(-2);
  EXPECT_EQ(max_threads(), 1);
}

TEST(Cores, AtLeastOne) { EXPECT_GE(available_cores(), 1); }

}  // namespace
}  // namespace limber
