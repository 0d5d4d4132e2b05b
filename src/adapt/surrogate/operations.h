// How many operations a model has left when units of its channel groups go.
#pragma once

#include <span>
#include <vector>

#include "passes/channel_groups.h"

namespace limber::adapt {

// Counts without cutting: what a choice among thousands of cuts asks for. Convolutions and matrix products
// alone: all else that a network does goes with them.
class OperationCount {
 public:
  // The groups are those of the graph; its open dimensions are 1.
  static Result<OperationCount> of(const Graph& graph, const ChannelGroups& groups);
  // With so many units of each group kept.
  double at(std::span<const int64_t> kept) const;
  double whole() const { return at(units_); }
  const std::vector<int64_t>& units() const { return units_; }  // by group

 private:
  // The share of an axis that is left: 1 less what the units that went had of it.
  struct Part {
    size_t group;
    double per_unit;  // share of the axis
  };
  struct Term {
    double flops;
    std::vector<Part> rows, columns;  // of the weights: along axis 0 and axis 1
  };
  double left(const std::vector<Part>& parts, std::span<const int64_t> kept) const;

  std::vector<Term> terms_;
  std::vector<int64_t> units_;
};

}  // namespace limber::adapt
