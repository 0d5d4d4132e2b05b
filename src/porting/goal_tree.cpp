#include "porting/goal_tree.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/assert.h"

namespace limber {

namespace {

constexpr double kNoWay = std::numeric_limits<double>::infinity();

using Columns = std::array<std::vector<double>, kBounds>;

// The shortest of the ways from the first `count` goals, and the first goal it is from. `ways` is room for
// them.
struct Shortest {
  double way = kNoWay;
  size_t from = 0;
};
Shortest shortest_way(const Columns& own, const Columns& reached, size_t count, const Bounds& to,
                      std::vector<double>& ways) {
  ways.assign(count, 0);
  double* const way = ways.data();
  for (size_t d = 0; d < kBounds; ++d) {
    const double *const has = own[d].data(), *const gets = reached[d].data();
    const double needs = to[d];
    for (size_t i = 0; i < count; ++i) {
      const double shrinks = has[i] >= needs ? gets[i] - needs : kNoWay;
      way[i] = way[i] > shrinks ? way[i] : shrinks;
    }
  }
  const auto least = std::min_element(ways.begin(), ways.end());
  if (least == ways.end()) return {};
  return {*least, static_cast<size_t>(least - ways.begin())};
}

}  // namespace

void GoalTree::append(const Bounds& goal) {
  for (size_t d = 0; d < kBounds; ++d) {
    own_[d].push_back(std::log(goal[d]));
    reached_[d].push_back(std::min(own_[d].back(), root_[d]));
  }
  parents_.push_back(kRoot);
  ways_.push_back(way_from_root(size() - 1));
}

GoalTree::GoalTree(const Bounds& root, std::span<const Bounds> goals) {
  for (size_t d = 0; d < kBounds; ++d) root_[d] = std::log(root[d]);
  for (const Bounds& goal : goals) append(goal);
  // Looser ones come first, so only those before a goal can be its parent; equal ones form a chain.
  std::vector<size_t> order(goals.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return goals[b] < goals[a]; });
  Columns own, reached;
  for (size_t d = 0; d < kBounds; ++d) {
    for (const size_t goal : order) own[d].push_back(own_[d][goal]), reached[d].push_back(reached_[d][goal]);
  }
  std::vector<double> room;
  for (size_t i = 0; i < order.size(); ++i) {
    Bounds to;
    for (size_t d = 0; d < kBounds; ++d) to[d] = own[d][i];
    const Shortest found = shortest_way(own, reached, i, to, room);
    if (found.way > ways_[order[i]]) continue;
    parents_[order[i]] = static_cast<int>(order[found.from]);
    ways_[order[i]] = found.way;
  }
}

// kNoWay where it does not lead.
double GoalTree::way_between(size_t from, size_t to) const {
  double way = 0;
  for (size_t d = 0; d < kBounds; ++d) {
    if (own_[d][from] < own_[d][to]) return kNoWay;
    way = std::max(way, reached_[d][from] - own_[d][to]);
  }
  return way;
}

double GoalTree::way_from_root(size_t to) const {
  double way = 0;
  for (size_t d = 0; d < kBounds; ++d) way = std::max(way, root_[d] - own_[d][to]);
  return way;
}

size_t GoalTree::insert(const Bounds& goal, const std::function<bool(size_t)>& may_move) {
  const size_t added = size();
  append(goal);
  Bounds to;
  for (size_t d = 0; d < kBounds; ++d) to[d] = own_[d][added];
  std::vector<double> room;
  const Shortest found = shortest_way(own_, reached_, added, to, room);
  if (found.way <= ways_[added] && added > 0) {
    parents_[added] = static_cast<int>(found.from);
    ways_[added] = found.way;
  }
  for (size_t other = 0; other < added; ++other) {
    const double way = way_between(added, other);
    const bool equal = std::isfinite(way_between(other, added));
    if (!(way < ways_[other]) || equal || !may_move(other)) continue;
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
