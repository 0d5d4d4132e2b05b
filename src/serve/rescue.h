// By which variant the next request is answered, given those that wait behind it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "serve/slowdown.h"

namespace limber {

// A request in the queue.
struct Waiting {
  double left_s = 0;  // until it must be answered; below 0: it is late
  int64_t rows = 1;
};

// The longest that a row may take when all of them take as long and none of the requests is to be late:
// `workers` take them in their order, and each may meet a stall. Requests that are late even when each row
// takes `quickest_s` have no say. Takes them one by one and keeps nothing.
class LongestTurn {
 public:
  LongestTurn(int workers, double stall_s, double quickest_s)
      : workers_(workers), stall_s_(stall_s), quickest_s_(quickest_s) {}
  void add(const Waiting& next);
  double seconds() const { return longest_; }

 private:
  int workers_;
  double stall_s_, quickest_s_;
  double longest_ = std::numeric_limits<double>::infinity();
  double before_ = 0;  // rows that are computed first
};

// What decides by which variant the head of a queue is answered.
struct QueueHead {
  Waiting first;
  double turn_s = 0;    // LongestTurn of the queue
  bool others = false;  // somebody waits behind it
  Slowdown slowdown;
};

// Seconds that nothing disturbs: of one row, and of the rows of the head.
struct VariantTimes {
  double row_s = 0, head_s = 0;
};

// The slowest variant, up to the active one, by which the head and those behind it are in time. `times(i)` are
// those of variant i of `count`, the quickest first. Nothing: the active one, which also answers what is late
// by any of them when nobody else waits; else that gets the quickest.
// REQUIRES: count > 0
template <typename Times>
std::optional<size_t> variant_for_head(const QueueHead& head, const VariantTimes& active, size_t count,
                                       const Times& times) {
  const auto in_time = [&](const VariantTimes& one) {
    return head.slowdown.predict(one.head_s) <= head.first.left_s &&
           head.slowdown.slowdown * one.row_s <= head.turn_s;
  };
  if (in_time(active)) return std::nullopt;
  for (size_t i = count; i-- > 0;) {
    const VariantTimes one = times(i);
    if (one.row_s <= active.row_s && in_time(one)) return i;
  }
  const bool a_chance = head.slowdown.slowdown * times(0).head_s <= head.first.left_s;
  return a_chance || head.others ? std::optional<size_t>(0) : std::nullopt;
}

}  // namespace limber
