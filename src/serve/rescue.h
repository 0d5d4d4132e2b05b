// How much time the next request may take, given those that wait behind it.
#pragma once

#include <cstdint>
#include <span>

namespace limber {

// A request in the queue.
struct Waiting {
  double left_s = 0;  // until it must be answered; below 0: it is late
  int64_t rows = 1;
};

// The longest that a row may take when all of them take as long and none of the requests is to be late:
// `workers` take them in their order, and each may meet a stall. Requests that are late even when each row
// takes `quickest_s` have no say.
double longest_turn(std::span<const Waiting> queue, int workers, double stall_s, double quickest_s);

}  // namespace limber
