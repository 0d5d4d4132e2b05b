#include "serve/slowdown.h"

#include <algorithm>

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
  const auto each_recent = [&](auto&& use) {
    for (size_t i = 0; i < count_; ++i)
      if (now - ring_[i].time <= kMaxAge) use(ring_[i]);
  };
  scratch_.clear();
  each_recent([&](const Sample& s) { scratch_.push_back(s.actual_s / s.estimated_s); });
  if (scratch_.empty()) {
    last_.samples = 0;
    return last_;
  }
  last_.samples = scratch_.size();
  last_.slowdown = quantile(scratch_, 0.5);
  scratch_.clear();
  each_recent([&](const Sample& s) { scratch_.push_back(s.actual_s - last_.slowdown * s.estimated_s); });
  last_.stall_s = std::max(0.0, quantile(scratch_, 0.9));
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
