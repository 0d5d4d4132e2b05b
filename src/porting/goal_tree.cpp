#include "porting/goal_tree.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/assert.h"

namespace limber {

GoalTree::GoalTree(const Bounds& root, std::span<const Bounds> goals)
    : parents_(goals.size(), kRoot), ways_(goals.size(), 0) {
  for (size_t d = 0; d < kBounds; ++d) {
    root_[d] = std::log(root[d]);
    for (const Bounds& goal : goals) {
      own_[d].push_back(std::log(goal[d]));
      reached_[d].push_back(std::min(own_[d].back(), root_[d]));
    }
  }
  // Looser ones come first, so only those before a goal can be its parent; equal ones form a chain.
  std::vector<size_t> order(goals.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return goals[b] < goals[a]; });
  for (size_t i = 0; i < order.size(); ++i) choose_parent(order[i], std::span(order).first(i));
}

// Infinite where it does not lead.
double GoalTree::way_between(size_t from, size_t to) const {
  double way = 0;
  for (size_t d = 0; d < kBounds; ++d) {
    if (own_[d][from] < own_[d][to]) return std::numeric_limits<double>::infinity();
    way = std::max(way, reached_[d][from] - own_[d][to]);
  }
  return way;
}

double GoalTree::way_from_root(size_t to) const {
  double way = 0;
  for (size_t d = 0; d < kBounds; ++d) way = std::max(way, root_[d] - own_[d][to]);
  return way;
}

void GoalTree::choose_parent(size_t goal, std::span<const size_t> among) {
  parents_[goal] = kRoot;
  ways_[goal] = way_from_root(goal);
  for (const size_t other : among) {
    const double way = way_between(other, goal);
    if (way > ways_[goal] || (way == ways_[goal] && parents_[goal] != kRoot)) continue;
    parents_[goal] = static_cast<int>(other);
    ways_[goal] = way;
  }
}

size_t GoalTree::insert(const Bounds& goal, const std::function<bool(size_t)>& may_move) {
  const size_t added = size();
  for (size_t d = 0; d < kBounds; ++d) {
    own_[d].push_back(std::log(goal[d]));
    reached_[d].push_back(std::min(own_[d].back(), root_[d]));
  }
  parents_.push_back(kRoot);
  ways_.push_back(0);
  std::vector<size_t> others(added);
  std::iota(others.begin(), others.end(), size_t{0});
  choose_parent(added, others);
  for (const size_t other : others) {
    const double way = way_between(added, other);
    const bool equal = std::isfinite(way_between(other, added));
    if (equal || !(way < ways_[other]) || !may_move(other)) continue;
    parents_[other] = static_cast<int>(added);
    ways_[other] = way;
  }
  return added;
}

double GoalTree::total() const { return std::accumulate(ways_.begin(), ways_.end(), 0.0); }

std::vector<size_t> GoalTree::order() const {
  std::vector<std::vector<size_t>> children(size() + 1);  // the root's are the last
  for (size_t i = 0; i < size(); ++i)
    children[parents_[i] == kRoot ? size() : static_cast<size_t>(parents_[i])].push_back(i);
  for (auto& some : children)
    std::stable_sort(some.begin(), some.end(), [this](size_t a, size_t b) { return ways_[a] < ways_[b]; });
  std::vector<size_t> order, open(children[size()].rbegin(), children[size()].rend());
  while (!open.empty()) {
    const size_t goal = open.back();
    open.pop_back();
    order.push_back(goal);
    open.insert(open.end(), children[goal].rbegin(), children[goal].rend());
  }
  LIMBER_ASSERT(order.size() == size());  // no cycles
  return order;
}

int GoalTree::depth(size_t goal) const {
  int depth = 0;
  for (int at = parents_[goal]; at != kRoot; at = parents_[static_cast<size_t>(at)]) ++depth;
  return depth;
}

}  // namespace limber
