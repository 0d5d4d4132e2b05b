#include "serve/choice_index.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "base/random.h"

namespace limber {
namespace {

double cost(const ChoicePoint& p, const ChoiceWeights& w) {
  return w.latency * p.latency_s + w.energy * p.energy_j + w.error * (1 - p.accuracy);
}

// What best() promises, said without a tree.
int scan(const std::vector<ChoicePoint>& points, const ChoiceWeights& weights, const ChoiceLimits& limits) {
  int found = -1;
  const auto key = [&](int i) {
    const ChoicePoint& p = points[static_cast<size_t>(i)];
    return std::tuple(cost(p, weights), p.latency_s, p.memory_bytes, i);
  };
  for (int i = 0; i < static_cast<int>(points.size()); ++i) {
    const ChoicePoint& p = points[static_cast<size_t>(i)];
    if (p.latency_s > limits.latency_s || p.energy_j > limits.energy_j ||
        p.memory_bytes > limits.memory_bytes || p.accuracy < limits.accuracy)
      continue;
    if (found < 0 || key(i) < key(found)) found = i;
  }
  return found;
}

// `steps`: how many different values there are of each number; few make many equal ones.
std::vector<ChoicePoint> random_points(Random& random, size_t count, uint64_t steps) {
  std::vector<ChoicePoint> points(count);
  const auto draw = [&] { return static_cast<double>(random.below(steps)) / static_cast<double>(steps); };
  for (ChoicePoint& p : points) p = {draw(), draw(), random.below(steps), draw()};
  return points;
}

TEST(ChoiceIndex, FindsWhatAScanFinds) {
  Random random(1);
  int queries = 0, found = 0;
  for (const size_t count : {1U, 2U, 7U, 8U, 9U, 63U, 65U, 500U, 3000U}) {
    for (const uint64_t steps : {3U, 50U, 1000000U}) {
      const auto points = random_points(random, count, steps);
      const ChoiceWeights weights{random.uniform(), random.uniform() * static_cast<double>(random.below(2)),
                                  random.uniform()};
      const ChoiceIndex index(points, weights);
      for (int q = 0; q < 4000; ++q) {
        ChoiceLimits limits;
        if (random.below(4) > 0) limits.latency_s = random.uniform(-0.05, 1.05);
        if (random.below(2) > 0) limits.energy_j = random.uniform(0, 1.05);
        if (random.below(2) > 0) limits.memory_bytes = random.below(steps + 1);
        if (random.below(2) > 0) limits.accuracy = random.uniform(0, 1);
        const int best = index.best(limits);
        ASSERT_EQ(best, scan(points, weights, limits)) << count << " points, query " << q;
        ++queries;
        found += best >= 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GE(queries, 100000);
  EXPECT_GT(found, queries / 10);
  EXPECT_LT(found, queries * 9 / 10);
}

TEST(ChoiceIndex, OfNothingFindsNothing) {
  const ChoiceIndex index({}, {});
  EXPECT_EQ(index.best({}), -1);
  EXPECT_EQ(index.fastest(), -1);
}

TEST(ChoiceIndex, FastestKeepsTheOtherLimits) {
  const ChoiceIndex index({{3, 0, 10, 0.9}, {1, 0, 100, 0.5}, {2, 0, 10, 0.7}, {2, 0, 5, 0.8}}, {});
  EXPECT_EQ(index.fastest(), 1);
  EXPECT_EQ(index.fastest({.memory_bytes = 50}), 3);  // as quick as number 2, and the better one
  EXPECT_EQ(index.fastest({.memory_bytes = 1}), -1);
  EXPECT_EQ(index.fastest({.accuracy = 0.75}), 3);
}

TEST(ChoiceIndex, WeightsDecide) {
  const std::vector<ChoicePoint> points{{0.010, 1, 0, 0.90}, {0.005, 2, 0, 0.80}, {0.008, 0.1, 0, 0.70}};
  EXPECT_EQ(ChoiceIndex(points, {}).best({}), 0);
  EXPECT_EQ(ChoiceIndex(points, {.latency = 1, .error = 0}).best({}), 1);
  EXPECT_EQ(ChoiceIndex(points, {.energy = 1, .error = 0}).best({}), 2);
}

}  // namespace
}  // namespace limber
