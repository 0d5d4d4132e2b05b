// Work that is compared: one piece after the other gets its turn, so that a machine that becomes slower or
// faster does so for all of them.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

namespace limber {

// Each participant is a thread of its own, and only one of them is on. Thread-safe.
class Turns {
 public:
  explicit Turns(size_t count) : seconds_(count, 0), left_(count, false) {}

  // All three are called by the participant itself, in this order.
  void join(size_t who);   // returns when it is on
  void pass(size_t who);   // to the next that is still there; returns when it is on again
  void leave(size_t who);  // for good

  // How long it has been on. REQUIRES: it has left
  double seconds(size_t who) const { return seconds_[who]; }

 private:
  void wait(std::unique_lock<std::mutex>& lock, size_t who);
  void hand_on(size_t who);

  std::mutex mutex_;
  std::condition_variable changed_;
  size_t on_ = 0;
  double since_ = 0;
  std::vector<double> seconds_;
  std::vector<bool> left_;
};

}  // namespace limber
