#pragma once

#include <algorithm>
#include <vector>

namespace limber {

// The middle value, or the mean of the two in the middle; 0 of nothing.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return 0.5 * (values[(values.size() - 1) / 2] + values[values.size() / 2]);
}

}  // namespace limber
