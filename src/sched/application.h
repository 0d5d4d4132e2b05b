// Several applications that share one machine for a window of time, and what each could do with its part.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace limber::sched {

// One way for an application to spend the window: a size of its model, and a retraining of that size.
struct Option {
  std::string name;
  double size = 1;               // share of the model's filters
  double before = 0, after = 0;  // accuracy in the window's domain until its retraining has ended, and then
  // That retraining takes on 1, 2, .. threads when nothing else runs; empty: it cannot be retrained.
  std::vector<double> seconds;
  double latency_s = 0;  // of one request
  double load = 0;       // share of the machine that answering takes

  bool operator==(const Option&) const = default;
};

struct Application {
  std::string name;
  double importance = 1;
  double latency_budget_s = 0;  // options above it are never chosen; 0: no budget
  double minimum_accuracy = 0;  // what is missing to it counts kShortfall times more
  std::vector<Option> options;
};

// Points below an application's minimum weigh so much more than others.
inline constexpr double kShortfall = 4;

struct Window {
  double seconds = 200;
  int threads = 2;  // that answering and retraining share
};

inline constexpr int kMaxThreads = 64;
inline constexpr size_t kMaxApplications = 1024, kMaxOptions = 256;

// Numbers in range; each application has an option within its latency budget.
Status check(std::span<const Application> applications, const Window& window);

// What an accuracy is worth to an application, importance apart.
double worth(const Application& application, double accuracy);
bool keeps_latency(const Application& application, const Option& option);
double largest_size(const Application& application);  // of options within the latency budget

// Retrainings by second when an option gets `threads`, which need not be whole. REQUIRES: it has seconds
double speed(const Option& option, double threads);

}  // namespace limber::sched
