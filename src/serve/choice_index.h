// Which of many variants costs least within limits: answered in about a microsecond.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace limber {

// What is known of one variant on this machine.
struct ChoicePoint {
  double latency_s = 0;
  double energy_j = 0;  // 0 where nobody knows
  uint64_t memory_bytes = 0;
  double accuracy = 0;  // 0..1
};

// What a choice is to be good at: the least of
//   latency · latency_s + energy · energy_j + error · (1 - accuracy).
// AdaScale's alpha and beta are the first two. By default the most accurate one is chosen: within a budget of
// latency that is what a user wants. Weights are 0 or more and finite.
struct ChoiceWeights {
  double latency = 0, energy = 0, error = 1;
};

struct ChoiceLimits {
  double latency_s = std::numeric_limits<double>::infinity();
  double energy_j = std::numeric_limits<double>::infinity();
  uint64_t memory_bytes = UINT64_MAX;
  double accuracy = 0;  // at least
};

// Immutable: any thread may use it.
//
// Points lie in the order of their cost, equal ones by latency, memory and number; above them stands a tree
// whose nodes hold the best that any point below has of each limit. The answer is the first point that keeps
// all limits: whole branches that cannot hold it are passed over.
class ChoiceIndex {
 public:
  // REQUIRES: numbers are finite and not negative; fewer than 2^31 points
  ChoiceIndex(std::vector<ChoicePoint> points, const ChoiceWeights& weights);

  size_t size() const { return points_.size(); }
  const ChoicePoint& point(int number) const { return points_[static_cast<size_t>(number)]; }
  // The number of the point, as they were given; -1: none keeps all limits.
  int best(const ChoiceLimits& limits) const;
  // The quickest of all that keep the limits but that of latency; -1: there is none.
  int fastest(const ChoiceLimits& limits = {}) const;

 private:
  static constexpr size_t kFanOut = 8;  // children of a node: eight bounds of a kind are one cache line
  // The bounds of up to kFanOut points or nodes, by kind, so that they are compared eight at a time.
  struct Node {
    std::array<double, kFanOut> latency_s, energy_j, memory_bytes, accuracy;
  };
  static unsigned within(const Node& node, const ChoiceLimits& limits);
  int first_within(size_t level, size_t node, const ChoiceLimits& limits) const;

  std::vector<ChoicePoint> points_;
  std::vector<int> order_;                 // numbers of points, the least cost first
  std::vector<std::vector<Node>> levels_;  // the first holds points, the last has one node
};

}  // namespace limber
