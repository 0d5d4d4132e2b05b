// How long things take on this machine: one way to find out, and one statistic.
//
// Whatever else a machine does only adds to a time, and it comes in bursts. So things run in rounds; of a
// round's few runs of a thing the quickest counts; and a thing takes what the lower quartile of its rounds
// is, its quick time: a quarter of the rounds were as quick, so one lucky run does not decide, and load that
// comes and goes during three quarters of them does not either. Things that are compared take turns in every
// round, and each round is corrected by how slow the machine was in it, as all things together tell.
//
// Everything that promises or compares times goes by this: the tuner, the choice among whole plans, latency
// tables, search, the demo, the benches. What people are shown of a distribution (median, p95) comes from
// time_each() and is said as such beside it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"

namespace limber {

class Session;

struct TimingOptions {
  double seconds = 0.05;  // about so long each thing runs in all, warm-up apart
  int min_rounds = 4;     // the least that has a quartile
  int max_rounds = 67;
  // Of a round; where things take turns, one before them gets the caches back, unless a run is so long that
  // it does not matter.
  int runs = 3;
  int warm_up = 2;  // runs before the first round
};

// The lower quartile; 0 of nothing.
double quick_time(std::vector<double> rounds);

// Times several things in turns. Not thread-safe.
class TurnTimer {
 public:
  // Does the thing once. May fill in the seconds that its parts took, always as many.
  using Run = std::function<Status(std::vector<double>& parts)>;

  explicit TurnTimer(const TimingOptions& options = {}) : options_(options) {}

  void add(Run run) { things_.push_back({std::move(run), {}, {}}); }
  void add(Session& session);  // its steps are the parts; it must outlive the timer's last round

  // As many rounds as the options say, after the warm-up. kResourceExhausted when `stop` became true
  // meanwhile.
  Status run(const std::atomic<bool>* stop = nullptr);
  // The same by hand, for who decides after each round whether another is needed.
  Status warm_up();
  Status round();

  size_t size() const { return things_.size(); }
  size_t rounds() const { return things_.empty() ? 0 : things_[0].rounds.size(); }
  // Quick times. REQUIRES: a round was run
  double seconds(size_t thing) const;
  std::vector<double> part_seconds(size_t thing) const;

 private:
  struct Thing {
    Run run;
    std::vector<double> rounds;              // seconds of the quickest run of each
    std::vector<std::vector<double>> parts;  // by part and round: in that run
  };
  Status turn(Thing& thing);
  std::vector<double> slowness() const;

  const TimingOptions options_;
  std::vector<Thing> things_;
  std::vector<double> scratch_;
};

// Seconds of one run, by the clock.
Result<double> time_once(const std::function<Status()>& run);
// The same of one run after the other: at least `least`, then until `seconds` are over or there are `most`.
// Of their distribution, for people; it says more of what else the machine does than of the thing.
Result<std::vector<double>> time_each(const std::function<Status()>& run, double seconds, size_t least,
                                      size_t most = SIZE_MAX);

// The quick time of one thing.
Result<double> time_quick(const std::function<Status()>& run, const TimingOptions& options = {});

}  // namespace limber
