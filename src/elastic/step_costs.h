// What a training step costs, depending on which tensors it trains.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "runtime/plan.h"

namespace limber {

using TensorMask = std::vector<bool>;  // by tensor, in the order of StepCosts::tensors()
std::vector<size_t> indices_of(const TensorMask& mask);

// The step that trains everything, as a graph, with a measured time for every node: the step that trains a
// subset executes exactly those nodes from which an update in the subset can be reached, whatever the shape
// of the network. A node of the forward pass has two times: it is faster, or gone, where nothing before it is
// trained, since that part compiles as inference and keeps nothing. Times come from plans of any subset; see
// survey().
class StepCosts {
 public:
  // `full` trains all of `tensors`, without clipping (which makes every update depend on every gradient).
  StepCosts(const Graph& full, std::vector<std::string> tensors);

  const std::vector<std::string>& tensors() const { return tensors_; }

  // A survey: forgets all times, then is told what executions of plans for subsets took, step by step. Of
  // several times of a node the shortest counts: what else the machine did meanwhile only adds to them. (Not
  // the rounds of runtime/timing.h: these are steps of a training, which nobody can repeat to time them.)
  // What is near an activation that a plan computes twice, to save memory, is faster there than in steps that
  // keep it, since it is in the cache when it is read: such times count only for nodes that were not seen
  // otherwise, scaled by what gradients take that were seen both ways.
  void begin_survey() {
    times_.clear();
    thrifty_times_.clear();
  }
  void survey(const Plan& plan, std::span<const double> seconds);
  void end_survey();
  // After a survey, the same to keep times up to date. Machines get faster and slower; nodes that every step
  // executes tell by how much, and the others are scaled by it: all times here are those of the machine as it
  // was in the survey. Of these, the median of the last few counts. Returns how much slower than in the
  // survey the machine was this time.
  double observe(const Plan& plan, std::span<const double> seconds);
  // Of these seconds, what went into nodes that the step that trains everything does not have: activations
  // that this plan computes twice and that one keeps.
  double spent_twice(const Plan& plan, std::span<const double> seconds) const;
  // Was every node seen that does more than move data? The time of others is estimated, from the bytes they
  // move or the operations they do.
  bool complete() const;

  // Seconds. Exact for the full graph, and for a subset as far as its plan runs nodes in the same way.
  double predict(const TensorMask& mask) const;
  double full() const;     // of training everything
  double forward() const;  // of what every step executes

  // For each tensor: seconds to bring the error gradient to it (nodes that also serve others), and of its
  // own.
  struct Chain {
    std::vector<size_t> order;  // tensors by distance from the loss, the nearest first
    std::vector<double> reach, own;
  };
  Chain chain() const;

  // Bytes of activations that stay from the forward pass for the backward pass of a subset.
  double kept_bytes(const TensorMask& mask) const;

  // The times, to go on later.
  using Times = std::map<std::string, std::vector<double>>;  // by node
  const Times& times() const { return times_; }
  const Times& thrifty_times() const { return thrifty_times_; }
  void set_times(Times times, Times thrifty_times);

 private:
  struct NodeCost {
    std::string key;
    bool always = false;                    // the loss depends on it
    std::vector<uint64_t> serves;           // a bit for each tensor whose update depends on it
    std::vector<uint64_t> changed_by;       // always-nodes: a bit for each tensor that its result depends on
    int64_t kept_bytes = 0;                 // always-nodes: of outputs that the backward pass reads
    std::vector<uint64_t> kept_for;         // to update these
    double seconds = 0, light_seconds = 0;  // the latter while none of changed_by is trained
    double work = 0;                        // bytes when it moves data, else operations
    bool known = false, moves_data = false;
  };

  static bool any(const std::vector<uint64_t>& bits, const std::vector<uint64_t>& mask);
  static double seconds_of(const NodeCost& node, const std::vector<uint64_t>& mask);
  std::vector<uint64_t> bits_of(const TensorMask& mask) const;
  std::vector<uint64_t> trained_by(const Plan& plan) const;
  template <typename Take>
  void for_each_time(const Plan& plan, const std::map<std::string, double>& sums, const Take& take);
  std::set<std::string> beside_copies(const Plan& plan) const;
  double how_slow(const std::map<std::string, double>& sums, const std::vector<uint64_t>& mask) const;
  double thrift_ratio() const;
  void find_uses(const Graph& full);
  void find_changes(const Graph& full);
  void take_times();
  void estimate_others();

  std::vector<std::string> tensors_;
  std::vector<NodeCost> nodes_;
  Times times_;          // by key (and kLight): the last few
  Times thrifty_times_;  // of nodes beside activations that their plan computes twice
  double slower_ = 1;    // at the last observation
};

}  // namespace limber
