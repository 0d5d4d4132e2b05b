#include "serve/choice_index.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

namespace limber {
namespace {

double cost_of(const ChoicePoint& point, const ChoiceWeights& weights) {
  return weights.latency * point.latency_s + weights.energy * point.energy_j +
         weights.error * (1 - point.accuracy);
}

}  // namespace

ChoiceIndex::ChoiceIndex(std::vector<ChoicePoint> points, const ChoiceWeights& weights)
    : points_(std::move(points)), order_(points_.size()) {
  std::iota(order_.begin(), order_.end(), 0);
  std::vector<double> cost;
  for (const ChoicePoint& point : points_) cost.push_back(cost_of(point, weights));
  std::sort(order_.begin(), order_.end(), [&](int a, int b) {
    const auto key = [&](int number) {
      const ChoicePoint& p = point(number);
      return std::tuple(cost[static_cast<size_t>(number)], p.latency_s, p.memory_bytes, number);
    };
    return key(a) < key(b);
  });

  // A place that holds nothing keeps no limit.
  constexpr double kNever = std::numeric_limits<double>::infinity();
  Node nothing;
  nothing.latency_s.fill(kNever);
  nothing.energy_j.fill(kNever);
  nothing.memory_bytes.fill(kNever);
  nothing.accuracy.fill(-kNever);
  const auto nodes_for = [](size_t count) { return (count + kFanOut - 1) / kFanOut; };

  std::vector<Node> level(nodes_for(order_.size()), nothing);
  for (size_t i = 0; i < order_.size(); ++i) {
    const ChoicePoint& p = point(order_[i]);
    Node& node = level[i / kFanOut];
    node.latency_s[i % kFanOut] = p.latency_s;
    node.energy_j[i % kFanOut] = p.energy_j;
    node.memory_bytes[i % kFanOut] = static_cast<double>(p.memory_bytes);
    node.accuracy[i % kFanOut] = p.accuracy;
  }
  levels_.push_back(std::move(level));
  while (levels_.back().size() > 1) {
    const std::vector<Node>& below = levels_.back();
    std::vector<Node> above(nodes_for(below.size()), nothing);
    for (size_t i = 0; i < below.size(); ++i) {
      Node& node = above[i / kFanOut];
      const auto least = [](const auto& all) { return *std::min_element(all.begin(), all.end()); };
      node.latency_s[i % kFanOut] = least(below[i].latency_s);
      node.energy_j[i % kFanOut] = least(below[i].energy_j);
      node.memory_bytes[i % kFanOut] = least(below[i].memory_bytes);
      node.accuracy[i % kFanOut] = *std::max_element(below[i].accuracy.begin(), below[i].accuracy.end());
    }
    levels_.push_back(std::move(above));
  }
}

// One bit for each child that keeps all limits, as far as its bounds tell. Written without branches: the
// compiler makes a few vector comparisons of it.
unsigned ChoiceIndex::within(const Node& node, const ChoiceLimits& limits) {
  const auto memory = static_cast<double>(limits.memory_bytes);
  unsigned bits = 0;
  for (size_t i = 0; i < kFanOut; ++i) {
    const unsigned keeps = static_cast<unsigned>(node.latency_s[i] <= limits.latency_s) &
                           static_cast<unsigned>(node.energy_j[i] <= limits.energy_j) &
                           static_cast<unsigned>(node.memory_bytes[i] <= memory) &
                           static_cast<unsigned>(node.accuracy[i] >= limits.accuracy);
    bits |= keeps << i;
  }
  return bits;
}

int ChoiceIndex::first_within(size_t level, size_t node, const ChoiceLimits& limits) const {
  for (unsigned bits = within(levels_[level][node], limits); bits != 0; bits &= bits - 1) {
    const size_t child = node * kFanOut + static_cast<size_t>(std::countr_zero(bits));
    if (level == 0) return child < order_.size() ? order_[child] : -1;
    if (const int found = first_within(level - 1, child, limits); found >= 0) return found;
  }
  return -1;
}

int ChoiceIndex::best(const ChoiceLimits& limits) const {
  if (points_.empty()) return -1;
  return first_within(levels_.size() - 1, 0, limits);
}

int ChoiceIndex::fastest(const ChoiceLimits& limits) const {
  int found = -1;
  for (const int number : order_) {  // the cheaper first, where two are as quick
    const ChoicePoint& p = point(number);
    const bool keeps = p.memory_bytes <= limits.memory_bytes && p.energy_j <= limits.energy_j &&
                       p.accuracy >= limits.accuracy;
    if (keeps && (found < 0 || p.latency_s < point(found).latency_s)) found = number;
  }
  return found;
}

}  // namespace limber
