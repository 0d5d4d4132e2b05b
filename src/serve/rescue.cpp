#include "serve/rescue.h"

#include <algorithm>
#include <limits>

namespace limber {

double longest_turn(std::span<const Waiting> queue, int workers, double stall_s, double quickest_s) {
  double longest = std::numeric_limits<double>::infinity();
  double before = 0;  // rows that are computed first
  for (const Waiting& one : queue) {
    const double turns = before / workers + static_cast<double>(one.rows);
    const double turn = (one.left_s - stall_s) / turns;
    if (turn >= quickest_s) longest = std::min(longest, turn);
    before += static_cast<double>(one.rows);
  }
  return longest;
}

}  // namespace limber
