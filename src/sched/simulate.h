// What several applications would have gained over many windows of drifting domains, by recorded profiles.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sched/profile.h"
#include "sched/schedule.h"

namespace limber::sched {

enum class Policy : uint8_t {
  kOptimised,       // sizes, retrainings and threads by optimise(), from estimates
  kOptimisedWhole,  // the same with the whole models alone
  kThief,           // Ekya
  kUniform,
  kNone,  // no retraining
};
inline constexpr Policy kPolicies[] = {Policy::kOptimised, Policy::kOptimisedWhole, Policy::kThief,
                                       Policy::kUniform, Policy::kNone};
const char* policy_name(Policy policy);

struct SimulateOptions {
  size_t applications = 0;  // those recorded, again and again; 0: each once
  int windows = 10;
  double stay = 0.3;     // how likely a domain stays for the next window
  double machine = 0;    // by the recorded one; 0: as many times as there are more applications
  double error = 0.058;  // of half of what micro-profiling finds, more
  uint64_t seed = 0;
};
Status check(const SimulateOptions& options);

struct Simulated {
  Policy policy = Policy::kNone;
  double accuracy = 0;  // mean over windows and applications, by importance
  int64_t retrainings = 0;
  // Of kOptimised:
  double estimate_error = 0;    // mean absolute error of accuracies expected of what was chosen
  double optimum_share = 1;     // the least of all windows
  double schedule_seconds = 0;  // that finding a schedule took, the longest
};

// All policies meet the same domains. What a retraining brought lasts as long as its domain; retrainings of
// baselines go on in the next window where they did not end. The optimiser plans what is left of a window
// anew when all retrainings have ended. `go_on` is asked before each window, with the share that is done;
// false ends it, with nothing. Null: it goes on.
Result<std::vector<Simulated>> simulate(const Profiles& profiles, const SimulateOptions& options,
                                        const std::function<bool(double done)>& go_on = nullptr);

}  // namespace limber::sched
