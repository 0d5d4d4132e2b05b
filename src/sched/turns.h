// Who may learn now, on a server that runs: one application after the other, each with all that learning may
// take of the machine.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sched/expectations.h"

namespace limber::sched {

// What a server knows of one of its applications.
struct Learner {
  std::string name;
  double importance = 1;
  double minimum_accuracy = 0;
  double busy_cores = 0;  // that answering takes, lately
  bool adapts = false;    // it has a method, which has not failed
  bool due = false;       // it has seen enough that is new
  bool learning = false;  // it has begun, and not ended
  int64_t domain = 0;
  std::optional<double> estimate;         // of its accuracy, lately
  std::optional<double> source_accuracy;  // of the model as it came, where it was trained
  double learning_s = 0;                  // of a core, that it takes to learn; 0: nobody knows
  double learnt_s = 0;                    // of these that are done, while it learns
};

struct Turn {
  bool learns = false;  // now
  std::string why;      // or why not
  Expected expected;    // accuracy now, and when it has learnt; 0: nobody knows, or there is nothing to learn
  double start_s = 0, end_s = 0;  // of its learning, from now, where some is planned
  double cores = 0;               // that it may learn with, now
};

struct TurnOptions {
  double window_s = 30;  // that is planned for, at least; more where learning takes longer
  double cores = 2;      // of the machine
  double share = 0.5;    // cores that learning may take, of all applications together
};

// Remembers what learning brought to each application in each domain. Use from one thread.
class TurnPlanner {
 public:
  explicit TurnPlanner(const TurnOptions& options) : options_(options) {}

  // By learner; at most one learns. The same for the same history.
  std::vector<Turn> plan(std::span<const Learner> learners);
  // What an application's learning has brought, by the plan before.
  void learnt(const std::string& name, int64_t domain, std::optional<double> accuracy);
  void use_window(double seconds) { options_.window_s = seconds; }
  // It is gone.
  void forget(const std::string& name) { known_.erase(name); }

 private:
  struct Known {
    Expectations expectations{1};
    Expected guess;  // as it was given last
  };
  Expected expect(const Learner& learner);
  void use_what_is_left(std::span<const Learner> learners, std::vector<Turn>& turns) const;

  TurnOptions options_;
  std::map<std::string, Known> known_;
};

}  // namespace limber::sched
