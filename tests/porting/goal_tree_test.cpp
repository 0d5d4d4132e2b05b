#include "porting/goal_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"

namespace limber {
namespace {

constexpr Bounds kWhole = {1, 1, 1, 1};
constexpr double kNever = std::numeric_limits<double>::infinity();

// Some without a limit, some alike.
std::vector<Bounds> random_goals(Random& random, size_t count) {
  std::vector<Bounds> goals(count);
  for (Bounds& goal : goals)
    for (double& bound : goal) bound = random.below(6) == 0 ? kNever : 0.25 + 0.25 * double(random.below(6));
  return goals;
}

bool leads(const Bounds& from, const Bounds& to) {
  for (size_t d = 0; d < kBounds; ++d)
    if (from[d] < to[d]) return false;
  return true;
}

double way(const Bounds& from, const Bounds& to) {
  double way = 0;
  for (size_t d = 0; d < kBounds; ++d)
    way = std::max(way, std::log(std::min(from[d], kWhole[d])) - std::log(to[d]));
  return way;
}

bool has_cycle(const std::vector<int>& parents) {
  for (size_t i = 0; i < parents.size(); ++i) {
    int at = parents[i];
    for (size_t steps = 0; at >= 0; at = parents[size_t(at)])
      if (steps++ > parents.size()) return true;
  }
  return false;
}

// The least sum over all trees.
double best_total(const std::vector<Bounds>& goals, std::vector<int>& parents, size_t goal, double sum,
                  double best) {
  if (sum >= best) return best;
  if (goal == goals.size()) return has_cycle(parents) ? best : sum;
  for (int p = -1; p < int(goals.size()); ++p) {
    if (p == int(goal) || (p >= 0 && !leads(goals[size_t(p)], goals[goal]))) continue;
    parents[goal] = p;
    best =
        best_total(goals, parents, goal + 1, sum + way(p < 0 ? kWhole : goals[size_t(p)], goals[goal]), best);
  }
  return best;
}

void expect_tree(const GoalTree& tree, const std::vector<Bounds>& goals) {
  const auto order = tree.order();
  ASSERT_EQ(order.size(), goals.size());
  std::vector<bool> seen(goals.size());
  for (const size_t goal : order) {
    const int parent = tree.parent(goal);
    EXPECT_FALSE(seen[goal]);
    seen[goal] = true;
    if (parent == GoalTree::kRoot) continue;
    EXPECT_TRUE(seen[size_t(parent)]) << "a child before its parent";
    EXPECT_TRUE(leads(goals[size_t(parent)], goals[goal]));
  }
}

TEST(GoalTree, EqualsBruteForce) {
  Random random(7);
  for (size_t count = 0; count <= 7; ++count) {
    for (int repeat = 0; repeat < 12; ++repeat) {
      const auto goals = random_goals(random, count);
      const GoalTree tree(kWhole, goals);
      expect_tree(tree, goals);
      std::vector<int> parents(count, -1);
      EXPECT_NEAR(tree.total(), best_total(goals, parents, 0, 0, 1e9), 1e-12) << count;
    }
  }
}

TEST(GoalTree, DoesNotDependOnTheOrderOfTheGoals) {
  Random random(3);
  auto goals = random_goals(random, 200);
  const double total = GoalTree(kWhole, goals).total();
  for (size_t i = goals.size(); i-- > 1;) std::swap(goals[i], goals[random.below(i + 1)]);
  EXPECT_NEAR(GoalTree(kWhole, goals).total(), total, 1e-9);
}

TEST(GoalTree, InsertingAllOneByOneIsTheSame) {
  Random random(5);
  const auto goals = random_goals(random, 100);
  GoalTree grown(kWhole, {});
  for (const Bounds& goal : goals) grown.insert(goal, [](size_t) { return true; });
  expect_tree(grown, goals);
  EXPECT_NEAR(grown.total(), GoalTree(kWhole, goals).total(), 1e-9);
}

TEST(GoalTree, WhatIsUnderWayKeepsItsParent) {
  const std::vector<Bounds> goals = {{0.8, 1, 1, 1}, {0.2, 1, 1, 1}, {0.1, 1, 1, 1}};
  GoalTree tree(kWhole, goals);
  EXPECT_EQ(tree.parent(1), 0);
  EXPECT_EQ(tree.parent(2), 1);
  EXPECT_EQ(tree.insert({0.4, 1, 1, 1}, [](size_t goal) { return goal != 1; }), 3u);
  EXPECT_EQ(tree.parent(3), 0);
  EXPECT_EQ(tree.parent(1), 0) << "had begun";
  EXPECT_EQ(tree.insert({0.15, 1, 1, 1}, [](size_t) { return true; }), 4u);
  EXPECT_EQ(tree.parent(4), 1);
  EXPECT_EQ(tree.parent(2), 4) << "the way from there is shorter";
  EXPECT_EQ(tree.depth(2), 3);
}

TEST(GoalTree, AChainIsAsLongAsItsEnd) {
  std::vector<Bounds> goals;
  for (int i = 1; i <= 9; ++i) goals.push_back({1 - 0.1 * i, 2, kNever, 2});
  const GoalTree tree(kWhole, goals);
  EXPECT_NEAR(tree.total(), -std::log(0.1), 1e-12);
  EXPECT_EQ(tree.depth(8), 8);
  const auto order = tree.order();
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(GoalTree, EqualGoalsAreReachedFromEachOther) {
  const std::vector<Bounds> goals(3, Bounds{0.5, 0.5, 0.5, 0.5});
  const GoalTree tree(kWhole, goals);
  expect_tree(tree, goals);
  EXPECT_NEAR(tree.total(), std::log(2.0), 1e-12);
}

}  // namespace
}  // namespace limber
