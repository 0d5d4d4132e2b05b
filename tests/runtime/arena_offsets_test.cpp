#include "runtime/arena_offsets.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace limber {
namespace {

void expect_valid(const std::vector<Lifetime>& lives, const ArenaOffsets& plan) {
  ASSERT_EQ(plan.offsets.size(), lives.size());
  for (size_t i = 0; i < lives.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kArenaAlignment, 0u);
    EXPECT_LE(plan.offsets[i] + lives[i].bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together = lives[i].first <= lives[j].last && lives[j].first <= lives[i].last;
      const bool apart = plan.offsets[i] + lives[i].bytes <= plan.offsets[j] ||
                         plan.offsets[j] + lives[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(!together || apart) << i << " and " << j << " share memory while both are alive";
    }
  }
}

TEST(Arena, NothingNeedsNothing) {
  const ArenaOffsets plan = place_in_arena({});
  EXPECT_EQ(plan.bytes, 0u);
}

TEST(Arena, AChainReusesTwoBuffers) {
  std::vector<Lifetime> lives;
  for (int i = 0; i < 50; ++i) lives.push_back({1024, i, i + 1});
  const ArenaOffsets plan = place_in_arena(lives);
  expect_valid(lives, plan);
  EXPECT_EQ(plan.bytes, 2048u);
  EXPECT_EQ(plan.live_bytes, 2048u);
}

// Random networks: mostly chains with now and then something that lives longer (a residual).
TEST(Arena, StaysWithinFivePercentOfTheLargestLiveSet) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    std::vector<Lifetime> lives;
    const int steps = 5 + static_cast<int>(random.below(120));
    for (int s = 0; s < steps; ++s) {
      const int reach = random.below(4) == 0 ? 1 + static_cast<int>(random.below(8)) : 1;
      lives.push_back({64 * (1 + random.below(4000)), s, std::min(steps, s + reach)});
    }
    const ArenaOffsets plan = place_in_arena(lives);
    expect_valid(lives, plan);
    EXPECT_LE(static_cast<double>(plan.bytes), 1.05 * static_cast<double>(plan.live_bytes))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace limber
