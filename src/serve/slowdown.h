// How much longer things take than they should: what requests tell about the machine as it is now.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <vector>

#include "device/least_squares.h"

namespace limber {

// What a variant takes on this machine now: slowdown · (what the table says) + stall.
//
// Slowdown is the median of actual by estimated. Sharing a core, a lower clock, cold caches: all work
// suffers. Stall is what nineteen of twenty requests stay below beside that, in seconds. Being put off a core
// for a time slice costs a quick variant as much as a slow one, so it must not be taken for a factor: after a
// switch to a quick variant it would look as if the machine had become slower still, and nothing would lead
// back.
struct Slowdown {
  double slowdown = 1;
  double stall_s = 0;
  size_t samples = 0;  // that this is known from
  double error = 0;    // standard error of the median, as a share of it

  double predict(double estimated_s) const { return slowdown * estimated_s + stall_s; }
  // As it is to be judged by within a budget. Stalls of more than half of it are nothing that a quicker
  // variant makes up for: they would drive every request to the quickest one, which misses as often and is
  // right less often.
  Slowdown within(double budget_s) const {
    Slowdown bounded = *this;
    bounded.stall_s = std::min(stall_s, 0.5 * budget_s);
    return bounded;
  }
};

// Remembers the last requests, as many as kWindow and no older than kMaxAge. Any thread may use it.
class SlowdownMeter {
 public:
  // Requests: enough for a ninth decile, and what 128 requests a second bring within kMaxAge.
  static constexpr size_t kWindow = 64;
  // Seconds. Long enough for a few requests of a slow stream, short enough to have forgotten an idle machine
  // within the second in which a server must react.
  static constexpr double kMaxAge = 0.5;
  // The newest requests have a say of their own: when they took longer than the rest, that is believed, or
  // half of kMaxAge would pass before a neighbour shows in the median. As few as give a median that one or
  // two stalls do not move.
  static constexpr size_t kNewest = 9;

  void add(double now, double estimated_s, double actual_s);
  // Of what is remembered; where that is nothing, as it was when it was last known.
  Slowdown read(double now);

 private:
  struct Sample {
    double time = 0, estimated_s = 0, actual_s = 0;
  };
  std::mutex mutex_;
  std::array<Sample, kWindow> ring_;
  size_t next_ = 0, count_ = 0;
  Slowdown last_;
  std::vector<double> ratios_, scratch_;
};

// How slowdown goes with the load that others put on the machine: a line, fitted online by recursive least
// squares with forgetting. Says what a forecast of the load means for latency. Not thread-safe.
class LoadResponse {
 public:
  void add(double load, double slowdown);
  // By what slowdown grows when the load goes from `now` to `then`; 1 or more: a load that falls is believed
  // when it has fallen.
  double growth(double now, double then) const;

 private:
  // Two processes on one core take twice as long: the belief before anything was seen, in weights of a
  // constant and of the load. Forgets with a half-life of some 70 samples: ten seconds or less of a server's
  // ticks.
  RecursiveLeastSquares fit_{{1, 1}, 0.99, 1};
};

}  // namespace limber
