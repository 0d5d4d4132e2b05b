#include "serve/tap.h"

#include <algorithm>

namespace limber {

RequestTap::RequestTap(size_t row_floats, size_t capacity)
    : row_floats_(row_floats), capacity_(capacity), ring_(row_floats * capacity) {}

// REQUIRES: mutex_ is held
bool RequestTap::may_copy(double now) {
  const double interval = interval_s_.load(std::memory_order_relaxed);
  if (interval <= 0) return true;
  const double earned = std::max(0.0, now - counted_at_) / interval;
  credit_ = std::min(static_cast<double>(capacity_), credit_ + earned);
  counted_at_ = std::max(counted_at_, now);
  if (credit_ < 1) return false;
  credit_ -= 1;
  return true;
}

void RequestTap::offer(std::span<const float> rows, double now) {
  offered_.fetch_add(rows.size() / row_floats_, std::memory_order_relaxed);
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (; !rows.empty() && may_copy(now); rows = rows.subspan(row_floats_)) {
    const size_t at = (first_ + size_) % capacity_;
    std::copy_n(rows.begin(), row_floats_, ring_.begin() + static_cast<std::ptrdiff_t>(at * row_floats_));
    copied_.fetch_add(1, std::memory_order_relaxed);
    if (size_ < capacity_) {
      ++size_;
    } else {
      first_ = (first_ + 1) % capacity_;
      overwritten_.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

size_t RequestTap::take(size_t most, std::vector<float>& to) {
  const std::lock_guard lock(mutex_);
  const size_t count = std::min(most, size_);
  for (size_t i = 0; i < count; ++i) {
    const auto from = ring_.begin() + static_cast<std::ptrdiff_t>(first_ * row_floats_);
    to.insert(to.end(), from, from + static_cast<std::ptrdiff_t>(row_floats_));
    first_ = (first_ + 1) % capacity_;
  }
  size_ -= count;
  return count;
}

RequestTap::Counts RequestTap::counts() const {
  return {offered_.load(std::memory_order_relaxed), copied_.load(std::memory_order_relaxed),
          overwritten_.load(std::memory_order_relaxed)};
}

}  // namespace limber
