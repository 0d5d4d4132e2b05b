// Optimisers, as nodes, and learning rates over time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace limber {

enum class OptimizerKind : uint8_t { kSgd, kAdam, kAdamW };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kSgd;
  double momentum = 0.9;   // SGD
  bool nesterov = false;   // SGD
  double decay = 0;        // L2 in the gradient for SGD and Adam, decoupled for AdamW
  bool decoupled = false;  // SGD: decay the weights directly
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // Adam, AdamW
  double clip_norm = 0;  // above 0: gradients are scaled down when their common norm is larger
  bool effects = false;  // adds an output "effect/<parameter>" for each; see UpdateEffect
};

std::string_view optimizer_name(OptimizerKind kind);

// A parameter and its gradient in a graph.
struct Trained {
  ValueId parameter, gradient;
  // Only these indices of one axis, ascending, which is all that the gradient has; empty: the whole
  // parameter.
  std::vector<int64_t> part = {};
  int axis = 0;
};

// What state and sums of gradients of a parameter, or of a part of it, are named after.
std::string trained_name(std::string_view parameter, const std::vector<int64_t>& part);

// Adds a step for each, applied in the order given (that in which gradients are complete, so that none has
// to wait); reads the rate from `rate` f32[]. State is named "optimizer/<what>/<trained_name>" and is
// zero before the first step of a parameter; see add_missing_state. What is not in a part stays as it is. A
// step stands after every other reader of its parameter as long as nothing that reads it is appended later.
Status add_optimizer(Graph& graph, const std::vector<Trained>& trained, ValueId rate,
                     const OptimizerOptions& options);

// Names of all state that an optimiser may keep for a parameter, by its trained_name.
std::vector<std::string> optimizer_state(std::string_view trained);

enum class ScheduleKind : uint8_t { kConstant, kStep, kCosine };

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kConstant;
  double rate = 0.01;
  int64_t warm_up = 0;                           // steps of linear growth from rate / warm_up
  double step_factor = 0.1;                      // kStep: multiplied in at each of `milestones`
  std::vector<double> milestones = {0.5, 0.75};  // as shares of all steps
  double final_rate = 0;                         // kCosine ends here
};

std::string_view schedule_name(ScheduleKind kind);
// The rate of step number `step` (from 0) of `total`.
double rate_at(const ScheduleOptions& options, int64_t step, int64_t total);
// The same where nobody knows how many there will be: when the share `done` (0..1) of the time is behind.
double rate_when(const ScheduleOptions& options, int64_t step, double done);

}  // namespace limber
