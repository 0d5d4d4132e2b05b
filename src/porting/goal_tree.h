// Which goal is reached from which: a tree of goals whose root is the model as it is.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "porting/goals.h"

namespace limber {

// A goal may be reached from another whose bounds are nowhere smaller, or from the root: what was made for
// that one has only to shrink. The way is as long as its worst bound shrinks, in natural logarithms, and each
// goal takes the shortest: since ways only lead to smaller bounds, that is the tree with the least sum.
class GoalTree {
 public:
  static constexpr int kRoot = -1;

  // `root`: what the model takes before anything is done to it.
  GoalTree(const Bounds& root, std::span<const Bounds> goals);

  // Goals that are there keep their numbers. Those of which `may_move` says so take the new one for their
  // parent where that is shorter. Returns the new one's number.
  size_t insert(const Bounds& goal, const std::function<bool(size_t)>& may_move);

  size_t size() const { return parents_.size(); }
  int parent(size_t goal) const { return parents_[goal]; }
  double way(size_t goal) const { return ways_[goal]; }  // from its parent
  double total() const;                                  // of all ways
  // Parents before children, and each goal's descendants right behind it, the shortest way first.
  std::vector<size_t> order() const;
  int depth(size_t goal) const;  // 0: reached from the root

 private:
  // Logarithms of bounds, by dimension.
  using Columns = std::array<std::vector<double>, kBounds>;

  void append(const Bounds& goal);
  double way_between(size_t from, size_t to) const;
  double way_from_root(size_t to) const;

  Bounds root_;  // logarithms
  Columns own_;
  // What goals have when they are reached from the root: no more than that.
  Columns reached_;
  std::vector<int> parents_;
  std::vector<double> ways_;
};

}  // namespace limber
