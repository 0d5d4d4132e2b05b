#include "serve/slowdown.h"

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

// REQUIRES: values is not empty
double quantile(std::vector<double>& values, double share) {
  const auto at = static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

}  // namespace

void SlowdownMeter::add(double now, double estimated_s, double actual_s) {
  if (!(estimated_s > 0) || !(actual_s >= 0)) return;
  const std::lock_guard lock(mutex_);
  ring_[next_] = {now, estimated_s, actual_s};
  next_ = (next_ + 1) % kWindow;
  count_ = std::min(count_ + 1, kWindow);
}

Slowdown SlowdownMeter::read(double now) {
  const std::lock_guard lock(mutex_);
  // The newest first.
  const auto each_recent = [&](auto&& use) {
    for (size_t i = 1; i <= count_; ++i) {
      const Sample& sample = ring_[(next_ + kWindow - i) % kWindow];
      if (now - sample.time <= kMaxAge) use(sample);
    }
  };
  ratios_.clear();
  each_recent([&](const Sample& s) { ratios_.push_back(s.actual_s / s.estimated_s); });
  last_.samples = ratios_.size();
  if (ratios_.empty()) return last_;
  std::vector<double>& values = scratch_;
  values.assign(ratios_.begin(),
                ratios_.begin() + static_cast<std::ptrdiff_t>(std::min(kNewest, ratios_.size())));
  const double newest = quantile(values, 0.5);
  const double median = quantile(ratios_, 0.5);
  // Of a normal distribution: a standard deviation is 0.74 of the distance between the quartiles, and the
  // median of n values is wrong by 1.25 standard deviations by the root of n.
  const double quartiles = quantile(ratios_, 0.75) - quantile(ratios_, 0.25);
  last_.slowdown = std::max(median, newest);
  last_.error = 0.93 * quartiles / std::sqrt(static_cast<double>(last_.samples)) / std::max(median, 1e-9);
  values.clear();
  each_recent([&](const Sample& s) { values.push_back(s.actual_s - median * s.estimated_s); });
  last_.stall_s = std::max(0.0, quantile(values, 0.95));
  return last_;
}

void LoadResponse::add(double load, double slowdown) {
  const double x[] = {1, load};
  fit_.add(x, std::min(slowdown, 20.0));  // times; a stall of a second is no slope
}

double LoadResponse::growth(double now, double then) const {
  const double base = fit_.weights()[0], slope = std::max(0.0, fit_.weights()[1]);
  const double from = std::max(1.0, base + slope * now);
  return std::max(1.0, (from + slope * (then - now)) / from);
}

}  // namespace limber
