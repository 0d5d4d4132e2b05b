// When to change the variant, to which, and why: the closed loop's decision, without clocks, threads or
// sensors.
//
//   sense ──> Situation ──> Governor::decide ──> Decision ──> switch
//
// Everything it goes by is in its arguments, so that a recorded day can be played again and gives the same
// switches.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "serve/choice_index.h"
#include "serve/slowdown.h"

namespace limber {

enum class Policy : uint8_t {
  kFixed,     // the variant it began with, always
  kReactive,  // as AdaptiveNet: the budget divided by actual / estimated, once a second, as it is
  kFeedback,  // stalls, waiting, hysteresis, dwell and rescue, going by what requests took
  kForecast,  // the same, going by the load that is expected as well
};
const char* policy_name(Policy policy);

struct GovernorOptions {
  Policy policy = Policy::kFeedback;
  double budget_s = std::numeric_limits<double>::infinity();  // of a request, waiting included
  ChoiceLimits limits;                                        // besides latency, which is `budget_s`
  double dwell_s = 0.4;  // at least between two switches; with kMaxAge of the meter under the second promised
  // So long a slower variant must seem to fit before it is taken: three times what the meter remembers, so
  // that nothing of the busy time is left in it.
  double calm_s = 1.5;
  // A slower variant must fit even if the slowdown is so many standard errors above what was measured: little
  // on a machine where nothing varies, much where it does. What lies between is the hysteresis.
  double assurance = 2;
  int workers = 1;  // that share the requests
};

// What is known at one moment.
struct Situation {
  double now = 0;  // seconds, of a clock that never goes back
  Slowdown slowdown;
  double rate = 0;  // requests per second
  double size = 1;  // of a request: how many times as much work as one row
  double load = 0;  // that others put on the machine, 0..1
  // The same a moment ahead; equal to `load` when nobody knows.
  double expected_load = 0;
};

struct Decision {
  int variant = -1;      // number in the index: what is to be active
  bool changed = false;  // from what was
  // No variant is expected to keep the budget; `variant` is the quickest. A search may find a quicker one.
  bool nothing_fits = false;
  double predicted_s = 0;  // of the variant, nine of ten requests
  std::string reason;      // of a change, for people
};

// Not thread-safe.
class Governor {
 public:
  // Starts with the variant that is best on an idle machine.
  Governor(std::shared_ptr<const ChoiceIndex> index, const GovernorOptions& options);

  int active() const { return active_; }
  const GovernorOptions& options() const { return options_; }
  const ChoiceIndex& index() const { return *index_; }
  // Replaces what may be chosen from; `active` is the number in it of what is active.
  void use(std::shared_ptr<const ChoiceIndex> index, int active, const ChoiceLimits& limits);
  void set_budget(double seconds) { options_.budget_s = seconds; }

  Decision decide(const Situation& situation);
  // Nine of ten requests that this variant serves take at most so long, as it seems.
  double predict(int variant, const Situation& situation) const;

 private:
  struct Outlook;
  Outlook look_ahead(const Situation& situation);
  static double predict(double latency_s, const Outlook& outlook, int workers);
  double latency_within(double budget_s, const Outlook& outlook) const;
  int choose(double budget_s, const Outlook& outlook) const;
  int slower_that_fits(const Outlook& outlook, double error) const;
  int half_way_to(int variant) const;
  Decision react(const Situation& situation);
  Decision change_to(int variant, const Situation& situation, const Outlook& outlook, bool nothing_fits);
  std::string explain(int from, const Situation& situation, const Outlook& outlook, bool nothing_fits) const;

  std::shared_ptr<const ChoiceIndex> index_;
  GovernorOptions options_;
  LoadResponse response_;
  int active_ = -1;
  double changed_at_ = -std::numeric_limits<double>::infinity();
  double calm_since_ = std::numeric_limits<double>::infinity();
  double calm_needed_s_;    // grows when going back turned out to be too early
  double failed_load_ = 0;  // that others put on the machine when it was
  double rose_at_ = -std::numeric_limits<double>::infinity();  // when a slower variant was taken last
};

}  // namespace limber
