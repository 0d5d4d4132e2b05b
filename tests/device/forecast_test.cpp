#include "device/forecast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "base/random.h"

namespace limber {
namespace {

double sine(int t) { return 0.5 + 0.4 * std::sin(2 * std::numbers::pi * t / 12); }

// Solves A·w = b by elimination with pivots: an oracle that shares nothing with the recursion.
std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column; row < n; ++row)
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    std::swap(a[column], a[pivot]);
    std::swap(b[column], b[pivot]);
    for (size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double factor = a[row][column] / a[column][column];
      for (size_t k = column; k < n; ++k) a[row][k] -= factor * a[column][k];
      b[row] -= factor * b[column];
    }
  }
  for (size_t i = 0; i < n; ++i) b[i] /= a[i][i];
  return b;
}

TEST(LeastSquares, IsTheBatchSolutionWhenNothingIsForgotten) {
  const double spread = 100;
  const std::vector<double> start = {0.5, -1, 2};
  RecursiveLeastSquares fit(start, 1, spread);
  std::vector<std::vector<double>> a(3, std::vector<double>(3));
  std::vector<double> b(3);
  for (size_t i = 0; i < 3; ++i) {
    a[i][i] = 1 / spread;
    b[i] = start[i] / spread;
  }
  Random random(7);
  for (int t = 0; t < 40; ++t) {
    const std::vector<double> x = {1, random.uniform(), random.uniform()};
    const double y = 3 * x[0] - x[1] + 0.5 * x[2] + 0.1 * random.uniform();
    fit.add(x, y);
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 3; ++j) a[i][j] += x[i] * x[j];
      b[i] += x[i] * y;
    }
  }
  const std::vector<double> expected = solve(a, b);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(fit.weights()[i], expected[i], 1e-9) << i;
}

TEST(LeastSquares, ForgetsWhatWasTrueOnce) {
  RecursiveLeastSquares fit({0, 0}, 0.9, 1e6), never({0, 0}, 1, 1e6);
  Random random(1);
  for (int t = 0; t < 400; ++t) {
    const std::vector<double> x = {1, random.uniform()};
    const double y = t < 200 ? x[1] : 1 - x[1];
    fit.add(x, y);
    never.add(x, y);
  }
  EXPECT_NEAR(fit.weights()[0], 1, 1e-6);
  EXPECT_NEAR(fit.weights()[1], -1, 1e-6);
  EXPECT_NEAR(never.weights()[1], 0, 0.2);
}

TEST(LeastSquares, StaysFiniteWhereNothingNewIsSeen) {
  RecursiveLeastSquares fit({0, 0, 0}, 0.9, 1e6);
  const std::vector<double> same = {1, 0.5, 0.5};
  for (int t = 0; t < 20000; ++t) fit.add(same, 0.5);
  fit.add(same, std::numeric_limits<double>::quiet_NaN());
  fit.add(std::vector<double>{1, std::numeric_limits<double>::infinity(), 0}, 1);
  EXPECT_NEAR(fit.predict(same), 0.5, 1e-6);
  Random random(3);
  for (int t = 0; t < 400; ++t) {
    const std::vector<double> x = {1, random.uniform(), random.uniform()};
    fit.add(x, x[1] - x[2]);
  }
  EXPECT_NEAR(fit.predict(std::vector<double>{1, 0.9, 0.2}), 0.7, 1e-3) << "still learns";
}

TEST(Forecast, FallsBackToTheLastValueAtTheStart) {
  LoadForecast forecast;
  EXPECT_EQ(forecast.predict(3), 0);
  EXPECT_FALSE(forecast.better_than_naive());
  for (const double value : {0.2, 0.9, 0.3}) {
    forecast.add(value);
    EXPECT_EQ(forecast.predict(1), value);
    EXPECT_EQ(forecast.predict(100), value);
    EXPECT_EQ(forecast.predict_fitted(2), value);
  }
}

TEST(Forecast, RecoversAnAutoregressiveProcess) {
  LoadForecast forecast({.order = 2, .forgetting = 1});
  Random random(11);
  double before = 0.5, last = 0.5;
  for (int t = 0; t < 20000; ++t) {
    const double next = 0.1 + 1.2 * last - 0.4 * before + 0.02 * (random.uniform() - 0.5);
    before = last;
    last = next;
    forecast.add(next);
  }
  EXPECT_NEAR(forecast.weights()[0], 0.1, 0.01);
  EXPECT_NEAR(forecast.weights()[1], 1.2, 0.03);
  EXPECT_NEAR(forecast.weights()[2], -0.4, 0.03);
  EXPECT_TRUE(forecast.better_than_naive());
  EXPECT_LT(forecast.model_error(), forecast.naive_error());
  const double two = 0.1 + 1.2 * (0.1 + 1.2 * last - 0.4 * before) - 0.4 * last;
  EXPECT_NEAR(forecast.predict(2), two, 0.01);
}

TEST(Forecast, AFitToFewValuesDoesNotRunAway) {
  LoadForecast forecast;
  for (const double value : {0.50, 0.51, 0.49, 0.50, 0.52, 0.50, 0.49, 0.51}) {
    forecast.add(value);
    EXPECT_NEAR(forecast.predict_fitted(5), 0.5, 0.15);
  }
}

TEST(Forecast, ContinuesASine) {
  LoadForecast forecast({.horizon = 3});
  int t = 0;
  for (; t < 60; ++t) forecast.add(sine(t));
  EXPECT_TRUE(forecast.better_than_naive());
  for (int steps = 1; steps <= 12; ++steps) EXPECT_NEAR(forecast.predict(steps), sine(t - 1 + steps), 5e-3);
  EXPECT_EQ(forecast.predict(0), forecast.last());
  EXPECT_EQ(forecast.predict(-4), forecast.last());
}

TEST(Forecast, NoiseIsLeftToTheBetterOfTheTwo) {
  // A walk: nothing beats its last value, in the long run.
  Random random(5);
  LoadForecast forecast;
  forecast.add(0.5);
  double value = 0.5, chosen = 0, naive = 0;
  for (int t = 0; t < 2000; ++t) {
    const double next = std::clamp(value + 0.05 * (random.uniform() - 0.5), 0.0, 1.0);
    chosen += std::pow(forecast.predict(1) - next, 2);
    naive += std::pow(value - next, 2);
    forecast.add(next);
    value = next;
  }
  EXPECT_LT(chosen, 1.1 * naive);
}

TEST(Forecast, AStepIsFollowedAtOnceAndSettles) {
  LoadForecast forecast;
  for (int t = 0; t < 200; ++t) forecast.add(0.2);
  EXPECT_NEAR(forecast.predict(5), 0.2, 1e-6);
  forecast.add(0.9);
  for (int t = 0; t < 30; ++t) forecast.add(0.9);
  for (int steps = 1; steps < 10; ++steps) EXPECT_NEAR(forecast.predict(steps), 0.9, 0.02);
}

TEST(Forecast, ConstantsStay) {
  for (const double constant : {0.0, 0.3, 1.0}) {
    LoadForecast forecast;
    for (int t = 0; t < 3000; ++t) forecast.add(constant);
    EXPECT_NEAR(forecast.predict(50), constant, 1e-6);
    EXPECT_NEAR(forecast.predict_fitted(50), constant, 1e-3);
  }
}

TEST(Forecast, NeverLeavesItsRange) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double extremes[] = {0, 1, -5, 1e300, -1e300, kInfinity, -kInfinity, std::nan(""), 1e-300, 0.5};
  for (const int order : {1, 4, 16}) {
    for (const double forgetting : {0.5, 0.98, 1.0}) {
      LoadForecast forecast({.order = order, .forgetting = forgetting, .horizon = 2});
      Random random(static_cast<uint64_t>(order));
      for (int t = 0; t < 2000; ++t) {
        const auto pick = static_cast<size_t>(random.uniform() * std::size(extremes));
        forecast.add(t % 3 == 0 ? extremes[pick] : random.uniform());
        for (const int steps : {1, 3, 1000000}) {
          for (const double said : {forecast.predict(steps), forecast.predict_fitted(steps)}) {
            ASSERT_GE(said, 0);
            ASSERT_LE(said, 1);
          }
          if (t % 100 != 0) break;
        }
      }
      EXPECT_TRUE(std::isfinite(forecast.model_error()));
    }
  }
}

TEST(Forecast, NamesOptionsThatMakeNoSense) {
  EXPECT_EQ(ForecastOptions().problem(), "");
  EXPECT_NE(ForecastOptions{.order = 0}.problem(), "");
  EXPECT_NE(ForecastOptions{.forgetting = 0}.problem(), "");
  EXPECT_NE(ForecastOptions{.forgetting = 1.01}.problem(), "");
  EXPECT_NE(ForecastOptions{.forgetting = std::nan("")}.problem(), "");
  EXPECT_NE(ForecastOptions{.horizon = 0}.problem(), "");
}

}  // namespace
}  // namespace limber
