// Copies of some of the rows that a model is asked about, for whoever wants to learn from them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace limber {

// A ring of rows in memory, the newest ones, in the order in which they were answered. Nothing else keeps
// them.
//
// Any thread may call anything. Who answers requests never waits here: a row is copied when there is credit
// for it and nobody else is at the ring at this moment, and passed by otherwise.
class RequestTap {
 public:
  // Of input 0, f32, as the model gets it. REQUIRES: both above 0
  RequestTap(size_t row_floats, size_t capacity);

  size_t row_floats() const { return row_floats_; }
  // One row in so many seconds, on average; what was not taken counts later, up to a full ring. 0: all rows.
  void set_interval(double seconds) { interval_s_.store(seconds, std::memory_order_relaxed); }

  // REQUIRES: whole rows
  void offer(std::span<const float> rows, double now);
  // Moves up to `most` rows, the oldest first, to the end of `to`; returns how many.
  size_t take(size_t most, std::vector<float>& to);

  struct Counts {
    uint64_t offered = 0;
    uint64_t copied = 0;
    uint64_t overwritten = 0;  // by newer ones, before anybody took them
  };
  Counts counts() const;

 private:
  bool may_copy(double now);

  const size_t row_floats_, capacity_;
  std::atomic<double> interval_s_ = 0;
  std::atomic<uint64_t> offered_ = 0, copied_ = 0, overwritten_ = 0;

  std::mutex mutex_;  // of what follows
  std::vector<float> ring_;
  size_t first_ = 0, size_ = 0;  // rows
  double credit_ = 0, counted_at_ = 0;
};

}  // namespace limber
