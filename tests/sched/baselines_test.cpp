#include "sched/baselines.h"

#include <gtest/gtest.h>

#include "sched/optimise.h"
#include "sched/schedule.h"

namespace limber::sched {
namespace {

constexpr Window kWindow{100, 2};

Application camera(double before, double after, double seconds, double load = 0) {
  Application application;
  application.name = "camera";
  application.options = {{"whole", 1, before, after, {2 * seconds, seconds}, 0, load},
                         {"half", 0.5, before - 0.05, after - 0.05, {seconds / 2, seconds / 4}, 0, load / 2}};
  return application;
}

TEST(Baselines, SkippedImagesCostWhatEkyaMeasured) {
  EXPECT_EQ(skipping_factor(0.5), 1);
  EXPECT_EQ(skipping_factor(1), 1);
  EXPECT_NEAR(skipping_factor(2), 0.78, 1e-12);
  EXPECT_NEAR(skipping_factor(7.5), 0.295, 1e-12);
  EXPECT_NEAR(skipping_factor(40), 0.02, 1e-12);
}

TEST(Baselines, NoRetrainingKeepsWhatIs) {
  const std::vector<Application> applications = {camera(0.5, 0.9, 10), camera(0.7, 0.9, 10)};
  const auto accuracies = accuracies_of(applications, kWindow, no_retraining(applications));
  EXPECT_NEAR(accuracies[0], 0.5, 1e-12);
  EXPECT_NEAR(accuracies[1], 0.7, 1e-12);
}

TEST(Baselines, UniformGivesEachAnEqualShareOfTheWholeModel) {
  const std::vector<Application> applications(2, camera(0.5, 0.9, 25));
  const auto plans = uniform(applications);
  EXPECT_EQ(plans[0].option, 0u);
  EXPECT_NEAR(plans[0].retraining, 0.5, 1e-12);
  EXPECT_NEAR(ends_of(applications, kWindow, plans)[1], 50, 1e-9);
  EXPECT_NEAR(accuracies_of(applications, kWindow, plans)[0], 0.7, 1e-9);
  // Half of the window is over before: nothing is retrained in time.
  EXPECT_NEAR(accuracies_of(applications, kWindow, plans, 50)[0], 0.5, 1e-9);
}

TEST(Baselines, WhatRetrainingHadGoesToThoseThatAnswer) {
  std::vector<Application> applications = {camera(0.5, 0.5, 25, 1)};
  const std::vector<Allotment> plans = {{0, true, 0.5, 0.5}};
  // Every second image for 50 s, all of them after that.
  EXPECT_NEAR(accuracies_of(applications, kWindow, plans)[0], 0.5 * (0.5 * 0.78 + 0.5), 1e-9);
}

TEST(Baselines, TheThiefTakesFromWhoGainsLittle) {
  const std::vector<Application> applications = {camera(0.3, 0.9, 25), camera(0.8, 0.81, 25)};
  const auto plans = thief(applications, kWindow, 0);
  EXPECT_GT(plans[0].retraining, plans[1].retraining);
  const auto mean = [&](const std::vector<Allotment>& of) {
    return weighted_mean(applications, accuracies_of(applications, kWindow, of));
  };
  EXPECT_GT(mean(plans), mean(uniform(applications)));
  EXPECT_GT(mean(plans), mean(no_retraining(applications)));
  double shares = 0;
  for (const Allotment& plan : plans) shares += plan.answering + plan.retraining;
  EXPECT_NEAR(shares, 1, 1e-9);
}

TEST(Baselines, TheOptimumIsNoWorseThanAnyOfThem) {
  const std::vector<Application> applications = {camera(0.3, 0.9, 40, 0.05), camera(0.6, 0.8, 25, 0.05),
                                                 camera(0.5, 0.9, 60, 0.05)};
  const auto best = optimise(applications, kWindow);
  ASSERT_TRUE(best.ok());
  for (const auto& plans : {thief(applications, kWindow, 0), uniform(applications)})
    EXPECT_GE(best->accuracy, weighted_mean(applications, accuracies_of(applications, kWindow, plans)));
}

TEST(Baselines, ProfilingCostsAShareOfRetraining) {
  const std::vector<Application> applications(3, camera(0.5, 0.9, 60));
  EXPECT_NEAR(profiling_seconds(applications, kWindow), 3 * 60 / 60.0, 1e-9);
}

TEST(Baselines, FixedOptionsKeepTheLatency) {
  Application application = camera(0.5, 0.9, 60);
  EXPECT_EQ(fixed_option(application), 0u);
  application.options[0].latency_s = 1;
  application.latency_budget_s = 0.5;
  EXPECT_EQ(fixed_option(application), 1u);
}

}  // namespace
}  // namespace limber::sched
