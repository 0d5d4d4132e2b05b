#include "serve/rescue.h"

#include <algorithm>

namespace limber {

void LongestTurn::add(const Waiting& next) {
  const double turns = before_ / workers_ + static_cast<double>(next.rows);
  const double turn = (next.left_s - stall_s_) / turns;
  if (turn >= quickest_s_) longest_ = std::min(longest_, turn);
  before_ += static_cast<double>(next.rows);
}

}  // namespace limber
