#include "serve/tap.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

namespace limber {
namespace {

std::vector<float> rows_of(std::initializer_list<float> values, size_t floats) {
  std::vector<float> rows;
  for (const float value : values) rows.insert(rows.end(), floats, value);
  return rows;
}

TEST(RequestTap, GivesTheNewestInTheirOrder) {
  RequestTap tap(2, 3);
  for (int i = 0; i < 5; ++i) tap.offer(rows_of({static_cast<float>(i)}, 2), i);
  std::vector<float> taken = {-1};
  EXPECT_EQ(tap.take(2, taken), 2U);
  EXPECT_EQ(taken, (std::vector<float>{-1, 2, 2, 3, 3})) << "behind what is there";
  tap.offer(rows_of({5, 6}, 2), 5);
  taken.clear();
  EXPECT_EQ(tap.take(9, taken), 3U);
  EXPECT_EQ(taken, rows_of({4, 5, 6}, 2));
  EXPECT_EQ(tap.take(9, taken), 0U);
  const RequestTap::Counts counts = tap.counts();
  EXPECT_EQ(counts.offered, 7U);
  EXPECT_EQ(counts.copied, 7U);
  EXPECT_EQ(counts.overwritten, 2U);
}

TEST(RequestTap, ThinsOutEvenly) {
  RequestTap tap(1, 4);
  tap.set_interval(1);
  std::vector<float> taken;
  for (int i = 0; i < 100; ++i) {
    tap.offer(rows_of({static_cast<float>(i)}, 1), 1000 + 0.25 * i);
    tap.take(4, taken);
  }
  // A full ring's worth at once after the long time before, then every fourth.
  ASSERT_EQ(taken.size(), 4 + 24U);
  for (size_t i = 5; i < taken.size(); ++i) EXPECT_EQ(taken[i] - taken[i - 1], 4) << i;
  EXPECT_EQ(tap.counts().offered, 100U);
  EXPECT_EQ(tap.counts().copied, 28U);
  EXPECT_EQ(tap.counts().overwritten, 0U);
}

// Whole rows come out, however many put them in.
TEST(RequestTap, RowsAreNeverMixed) {
  constexpr size_t kFloats = 512;
  RequestTap tap(kFloats, 8);
  std::atomic<bool> over = false;
  std::vector<std::thread> workers;
  for (int w = 0; w < 3; ++w)
    workers.emplace_back([&, w] {
      std::vector<float> row(kFloats);
      for (int i = 0; !over; ++i) {
        std::iota(row.begin(), row.end(), static_cast<float>(1000 * (i % 1000) + w));
        tap.offer(row, 0);
      }
    });
  std::vector<float> taken;
  size_t rows = 0;
  while (rows < 200) {
    taken.clear();
    rows += tap.take(4, taken);
    for (size_t at = 0; at < taken.size(); ++at)
      ASSERT_EQ(taken[at], taken[at / kFloats * kFloats] + static_cast<float>(at % kFloats));
  }
  over = true;
  for (std::thread& worker : workers) worker.join();
}

}  // namespace
}  // namespace limber
