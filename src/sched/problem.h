// The optimiser's own view of applications: candidates as plain numbers, the window as 1.
#pragma once

#include <span>
#include <vector>

#include "sched/schedule.h"

namespace limber::sched {

// An option with a number of threads. It is worth base, and gain for the part of the window after its end.
struct Candidate {
  Choice choice;
  double base = 0, gain = 0;
  double duration = 0;  // when nothing else runs
  double load = 0;
};

struct Problem {
  int threads = 1;
  double min_load = 0;  // that answering takes at least
  std::vector<std::vector<Candidate>>
      candidates;  // by application, each no worse than all others in something
};

// kResourceExhausted when the machine cannot even answer. REQUIRES: check() of both is ok
Result<Problem> make_problem(std::span<const Application> applications, const Window& window);

// One candidate of each application, and who is first.
struct Plan {
  std::vector<size_t> chosen, order;
};

// What lay_out() makes of plans, as numbers alone. Not thread-safe.
class Evaluator {
 public:
  explicit Evaluator(const Problem& problem)
      : problem_(problem), free_(static_cast<size_t>(problem.threads)) {}
  double value(const Plan& plan);  // below all others when the machine cannot answer

 private:
  const Problem& problem_;
  std::vector<double> free_;
};

// Takes the first `threads` that are free until `end`; `free` stays ascending.
void occupy(std::span<double> free, size_t threads, double end);

}  // namespace limber::sched
