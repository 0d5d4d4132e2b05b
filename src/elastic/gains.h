// What training a tensor is worth: how fast its updates lower the loss.
#pragma once

#include <vector>

#include "elastic/step_costs.h"
#include "train/optimizer.h"
#include "train/training_session.h"

namespace limber {

// An update lowers the loss of its own batch whether or not it learns anything: part of a gradient is noise
// of that batch. With momentum the updates of earlier batches tell the two apart, since their noise is
// another: the gradient now times the velocity from before is what earlier updates still bring on images that
// they have not seen. It fades when a tensor has learnt what it can, and is below zero where it goes too far.
// Where the optimiser keeps no such velocity (no momentum, Adam), gradient times update has to do.
//
// Newer updates count more. A tensor of which little is known is taken to be worth what its gradient's norm
// says, by what that is worth in the tensors that are known.
class Gains {
 public:
  Gains(size_t tensors, const OptimizerOptions& optimizer);

  // After an update at `rate` of the tensors in `trained`, with the effect of each of them, in order.
  void add(const std::vector<size_t>& trained, const std::vector<Effect>& effects, double rate);

  // By tensor, not below 0: the root of the fall of the loss by an update, in the same unknown unit for all.
  // The root, because the greatest falls are the shortest: most of what a new classifier brings it brings in
  // its first updates, and to follow it alone leaves no time for the layers that bring the rest.
  std::vector<double> worth() const;

  // To go on later: some numbers for each tensor.
  std::vector<std::vector<double>> state() const;
  // Can state() have these numbers of a tensor?
  static bool is_state(const std::vector<double>& numbers);
  // REQUIRES: is_state() of each
  void set_state(const std::vector<std::vector<double>>& state);

 private:
  struct Seen {
    double lowered = 0, weight = 0;   // by earlier updates, and how many of them, counted by their momentum
    double squares = 0, updates = 0;  // of gradients
  };

  double momentum_weight(int64_t updates) const;

  const OptimizerOptions optimizer_;
  const bool has_velocity_;
  std::vector<Seen> seen_;
  std::vector<int64_t> in_row_;  // updates since the tensor came back, as its velocity counts
};

}  // namespace limber
