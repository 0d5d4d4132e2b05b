#include "device/least_squares.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace limber {

RecursiveLeastSquares::RecursiveLeastSquares(std::vector<double> start, double forgetting, double spread)
    : weights_(start),
      start_(std::move(start)),
      covariance_(start_.size() * start_.size()),
      product_(start_.size()),
      forgetting_(forgetting),
      spread_(spread) {
  LIMBER_ASSERT(!start_.empty() && forgetting > 0 && forgetting <= 1 && spread > 0);
  for (size_t i = 0; i < start_.size(); ++i) covariance_[i * start_.size() + i] = spread;
}

double RecursiveLeastSquares::predict(std::span<const double> x) const {
  LIMBER_ASSERT(x.size() == weights_.size());
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += weights_[i] * x[i];
  return sum;
}

void RecursiveLeastSquares::add(std::span<const double> x, double y) {
  LIMBER_ASSERT(x.size() == weights_.size());
  const auto finite = [](double value) { return std::isfinite(value); };
  if (!finite(y) || !std::all_of(x.begin(), x.end(), finite)) return;
  // Forgetting widens every direction, observing narrows those that are seen: one that is never seen would
  // widen until nothing is left of the numbers. It is as unknown as at the start, never more.
  const size_t n = weights_.size();
  double widest = 0;
  for (size_t i = 0; i < n; ++i) widest = std::max(widest, covariance_[i * n + i]);
  if (update(x, y, widest / forgetting_ > spread_ ? 1 : forgetting_)) return;
  weights_ = start_;
  std::fill(covariance_.begin(), covariance_.end(), 0);
  for (size_t i = 0; i < n; ++i) covariance_[i * n + i] = spread_;
}

// False when rounding has spoilt the numbers.
bool RecursiveLeastSquares::update(std::span<const double> x, double y, double forgetting) {
  const size_t n = weights_.size();
  double scale = forgetting;
  for (size_t i = 0; i < n; ++i) {
    product_[i] = 0;
    for (size_t j = 0; j < n; ++j) product_[i] += covariance_[i * n + j] * x[j];
    scale += x[i] * product_[i];
  }
  if (!std::isfinite(scale) || scale <= 0) return false;
  const double error = (y - predict(x)) / scale;
  bool sound = true;
  for (size_t i = 0; i < n; ++i) {
    weights_[i] += product_[i] * error;
    for (size_t j = 0; j <= i; ++j) {
      double& entry = covariance_[i * n + j];
      entry = (entry - product_[i] * product_[j] / scale) / forgetting;
      covariance_[j * n + i] = entry;
    }
    sound = sound && std::isfinite(weights_[i]) && covariance_[i * n + i] >= 0;
  }
  return sound;
}

}  // namespace limber
