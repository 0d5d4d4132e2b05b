#include "serve/loadgen/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace limber {
namespace {

TEST(Schedule, ConstantArrivalsAreEvenlySpaced) {
  const auto due = due_times({{10, 1}, {0, 2}, {2, 1}}, Arrivals::kConstant, 0);
  ASSERT_EQ(due.size(), 12U);
  EXPECT_DOUBLE_EQ(due[0], 0);
  EXPECT_DOUBLE_EQ(due[9], 0.9);
  EXPECT_DOUBLE_EQ(due[10], 3) << "a pause of two seconds lies between";
  EXPECT_DOUBLE_EQ(due[11], 3.5);
}

TEST(Schedule, PoissonArrivalsHaveTheRateAndTheSpreadOfTheirDistribution) {
  const double rate = 1000, seconds = 100;
  const auto due = due_times({{rate, seconds}}, Arrivals::kPoisson, 7);
  const auto count = static_cast<double>(due.size());
  EXPECT_NEAR(count, rate * seconds, 5 * std::sqrt(rate * seconds));
  EXPECT_TRUE(std::is_sorted(due.begin(), due.end()));
  EXPECT_LT(due.back(), seconds);
  double sum = 0, squares = 0;
  for (size_t i = 1; i < due.size(); ++i) {
    const double gap = due[i] - due[i - 1];
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / (count - 1), variance = squares / (count - 1) - mean * mean;
  EXPECT_NEAR(std::sqrt(variance) / mean, 1, 0.03) << "gaps are exponential: as wide as they are long";
}

TEST(Schedule, IsTheSameForTheSameSeed) {
  const std::vector<LoadPhase> phases = {{50, 2}, {200, 1}};
  EXPECT_EQ(due_times(phases, Arrivals::kPoisson, 3), due_times(phases, Arrivals::kPoisson, 3));
  EXPECT_NE(due_times(phases, Arrivals::kPoisson, 3), due_times(phases, Arrivals::kPoisson, 4));
}

TEST(Schedule, PhasesAreReadAndRefused) {
  const auto phases = parse_phases("200:10,0:2.5,1e3:5");
  ASSERT_TRUE(phases.ok()) << phases.status().message();
  ASSERT_EQ(phases->size(), 3U);
  EXPECT_EQ((*phases)[1].rate, 0);
  EXPECT_EQ((*phases)[1].seconds, 2.5);
  EXPECT_EQ((*phases)[2].rate, 1000);
  EXPECT_DOUBLE_EQ(total_seconds(*phases), 17.5);
  for (const char* text : {"", "200", "200:", ":10", "200:10,", "200:10s", "a:10", "-1:10", "200:0", "200:-1",
                           "nan:10", "inf:1", "1e7:1", "0:10", "1e6:1000"})
    EXPECT_EQ(parse_phases(text).status().code(), Code::kInvalidArgument) << text;
}

}  // namespace
}  // namespace limber
