// How busy the machine will be a few samples ahead.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "device/least_squares.h"

namespace limber {

struct ForecastOptions {
  int order = 4;             // samples that the next one is explained by
  double forgetting = 0.98;  // of what is 50 samples old, a third counts; 1: nothing is forgotten
  int horizon = 1;           // steps ahead at which the forecast is judged: those that are asked for

  std::string problem() const;
};

// Autoregressive: the next value is a weighted sum of the last ones and a constant, fitted to all that was
// seen. Beside it stands "the last value stays", which is hard to beat where load has no pattern; whichever
// was closer in the last while is used. A value costs well under a microsecond.
class LoadForecast {
 public:
  explicit LoadForecast(const ForecastOptions& options = {});  // REQUIRES: options.problem() is empty

  void add(double value);  // cut to 0..1; what is not a number is left out
  // `steps` samples after the last, 0..1. The last value where little was seen yet, 0 where nothing was.
  double predict(int steps = 1) const;
  double predict_fitted(int steps = 1) const;  // the autoregressive model, right or wrong
  double last() const { return recent_.empty() ? 0 : recent_.back(); }

  // Whether the model, horizon steps ahead, was closer in the last while than "the last value stays".
  bool better_than_naive() const;
  // Root of the mean square by which each was wrong in the last while; 0 before anything could be judged.
  double model_error() const;
  double naive_error() const;

  // The constant, then the weights of the last value, the one before it and so on.
  const std::vector<double>& weights() const { return fit_.weights(); }

 private:
  struct Pending {
    double model, naive;
  };
  void judge(double value);
  void regressors(const std::vector<double>& recent, std::vector<double>& x) const;

  ForecastOptions options_;
  RecursiveLeastSquares fit_;
  std::vector<double> recent_;   // at most `order`, the newest last
  std::deque<Pending> pending_;  // forecasts of values that have not come yet, the oldest first
  double judged_ = 0, model_square_ = 0, naive_square_ = 0;  // faded sums
  std::vector<double> x_;
};

}  // namespace limber
