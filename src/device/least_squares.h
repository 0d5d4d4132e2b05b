// Linear least squares, one observation at a time.
#pragma once

#include <span>
#include <vector>

namespace limber {

// Finds w that minimises  sum over t of f^(T-t) · (y_t - w·x_t)^2  +  f^T / spread · |w - start|^2
// where f is the forgetting factor: 1 keeps all that was seen, 0.98 about the last 50 observations.
// Observations that say nothing new about some direction do not make it forget what it knew there without
// bound, and numbers that are not finite are left out: w is always finite.
class RecursiveLeastSquares {
 public:
  // REQUIRES: 0 < forgetting <= 1, spread > 0
  RecursiveLeastSquares(std::vector<double> start, double forgetting, double spread);

  void add(std::span<const double> x, double y);  // REQUIRES: x as long as `start`
  double predict(std::span<const double> x) const;
  const std::vector<double>& weights() const { return weights_; }

 private:
  bool update(std::span<const double> x, double y, double forgetting);

  std::vector<double> weights_, start_;
  std::vector<double> covariance_;  // symmetric, row by row
  std::vector<double> product_;     // covariance · x
  double forgetting_, spread_;
};

}  // namespace limber
