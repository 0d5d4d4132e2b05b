// A training that ends by the clock: how far it is, and when it is over.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace limber {

// Of wall clock, for everything from the beginning of the job to its last checkpoint.
struct TimeLimit {
  double seconds = 0;  // 0: see below
  double speedup = 0;  // the time that all epochs with all tensors would take, by this; 0: epochs count

  bool given() const { return seconds > 0 || speedup > 0; }
};

// All times are seconds. What a training that went on spent before is counted in. Use from one thread.
class Pace {
 public:
  // `began`: when this process began with it, on `clock`.
  Pace(const TimeLimit& limit, double began, std::function<double()> clock = now_seconds)
      : clock_(std::move(clock)), asked_(limit), began_(began), limit_(limit.seconds) {}

  bool by_clock() const { return asked_.given(); }
  // False until the first updates have told what the speed-up is measured by.
  bool limited() const { return limit_ > 0; }
  double limit() const { return limit_; }
  double whole() const { return whole_; }  // what the speed-up is measured by; 0: not known, or not asked
  double spent() const { return before_ + clock_() - began_; }

  // What is kept for the end: the last evaluation and the last checkpoint.
  void set_reserve(double seconds) { reserve_ = seconds; }
  double left() const { return limit_ - reserve_ - spent(); }  // for updates. REQUIRES: limited()

  void count_update(double seconds);
  double update_seconds() const;  // the median of the last few
  // Has it seen enough updates to say how long the whole would take?
  bool can_settle() const { return !limited() && counted_ >= kSettleAfter; }
  // All epochs: what was spent, so many updates more like those that were counted, and what comes on top.
  // REQUIRES: can_settle()
  void settle(int64_t ahead, double on_top);

  // Of the time for updates, the share that is behind: 0..1. What else takes time makes it jump.
  double done() const;
  // No room for half an update more.
  bool over() const { return limited() && left() < 0.5 * update_seconds(); }
  // Updates from the first to the last, as things are now. REQUIRES: limited()
  int64_t expected_updates(int64_t behind) const;

  // For a checkpoint, and back.
  std::string note() const;
  Status restore(std::string_view note);

 private:
  static constexpr int64_t kSettleAfter = 6;  // updates: memory of the first is new, the others have a median

  std::function<double()> clock_;
  const TimeLimit asked_;
  const double began_;
  double limit_, whole_ = 0, before_ = 0, reserve_ = 0;
  double updating_ = 0;          // spent in updates
  int64_t counted_ = 0;          // updates of this process
  std::vector<double> updates_;  // the last few
};

}  // namespace limber
