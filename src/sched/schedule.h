// Who retrains what, when, and with how many threads; and what that is worth.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sched/application.h"

namespace limber::sched {

struct Decision {
  size_t option = 0;              // that answers for the whole window
  int threads = 0;                // of its retraining; 0: none
  double start_s = 0, end_s = 0;  // of its retraining, in the window

  bool operator==(const Decision&) const = default;
};

struct Schedule {
  std::vector<Decision> decisions;  // by application
  double value = 0;                 // mean worth over the window, weighted by importance
  double accuracy = 0;              // mean accuracy likewise
  double load = 0;                  // share of the machine that answering takes
  double bound = 0;                 // no schedule has a value above
  bool exact = false;               // none has a value above this one's

  double optimum_share() const;  // at least this part of the best value; 1 where exact
};

// An option, and the threads it is retrained with.
struct Choice {
  size_t option = 0;
  int threads = 0;  // 0: not retrained
};

// What answering takes with these options; above 1 the machine cannot do it.
double load_of(std::span<const Application> applications, std::span<const Choice> choices);

// Retrains in this order, each as soon as its threads are free; answering comes first, so that retraining has
// what it leaves. Those that would not end within the window are left out, and take no time.
// REQUIRES: a choice for each application, `order` names applications, no more than once each
Schedule lay_out(std::span<const Application> applications, const Window& window,
                 std::span<const Choice> choices, std::span<const size_t> order);

// Mean of `of` over applications by importance.
double weighted_mean(std::span<const Application> applications, std::span<const double> of);

// Those that retrain, by start; those that start together by end.
std::vector<size_t> retraining_order(const Schedule& schedule);

}  // namespace limber::sched
