#include "sched/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace limber::sched {
namespace {

// Applications that gain by retraining more or less, in domains whose features tell how much.
Profiles made_up(size_t applications, uint64_t seed) {
  Random random(seed);
  Profiles profiles;
  profiles.window = {100, 2};
  for (size_t a = 0; a < applications; ++a) {
    ApplicationProfile& profile = profiles.applications.emplace_back();
    profile.application.name = std::to_string(a);
    const double seconds = random.uniform(30, 120);
    profile.application.options = {{"whole", 1, 0, 0, {seconds, seconds / 1.7}, 0.01, 0.05},
                                   {"briefly", 1, 0, 0, {seconds / 3, seconds / 5}, 0.01, 0.05},
                                   {"third", 0.3, 0, 0, {seconds / 4, seconds / 6}, 0.004, 0.02}};
    for (int d = 0; d < 6; ++d) {
      const double hard = random.uniform(0, 0.4);
      profile.domains.push_back({std::to_string(d),
                                 {hard * 5, random.uniform()},
                                 {0.9 - hard, 0.9 - hard, 0.86 - hard},
                                 {0.9 - hard / 4, 0.9 - hard / 2, 0.88 - hard / 3}});
    }
    profile.application = in_domain(profile, 0);
  }
  return profiles;
}

const Simulated& of(const std::vector<Simulated>& all, Policy policy) {
  return *std::find_if(all.begin(), all.end(), [&](const Simulated& one) { return one.policy == policy; });
}

TEST(Simulate, OptimisedIsAboveAllBaselines) {
  for (const size_t applications : {2u, 3u, 4u}) {
    SimulateOptions options;
    options.windows = 20;
    const auto found = simulate(made_up(applications, applications), options);
    ASSERT_TRUE(found.ok()) << found.status().message();
    const double ours = of(*found, Policy::kOptimised).accuracy;
    EXPECT_GT(ours, of(*found, Policy::kUniform).accuracy);
    EXPECT_GT(ours, of(*found, Policy::kThief).accuracy);
    EXPECT_GT(ours, of(*found, Policy::kNone).accuracy);
    EXPECT_GT(of(*found, Policy::kOptimised).retrainings, 0);
    EXPECT_EQ(of(*found, Policy::kOptimised).optimum_share, 1);
    EXPECT_EQ(of(*found, Policy::kNone).retrainings, 0);
  }
}

TEST(Simulate, SixtyFourApplications) {
  SimulateOptions options;
  options.applications = 64;
  options.windows = 1;
  const auto found = simulate(made_up(4, 1), options);
  ASSERT_TRUE(found.ok());
  const Simulated& ours = of(*found, Policy::kOptimised);
  EXPECT_GE(ours.optimum_share, 0.99);
  EXPECT_GT(ours.accuracy, of(*found, Policy::kUniform).accuracy);
  EXPECT_GT(ours.accuracy, of(*found, Policy::kThief).accuracy);
}

TEST(Simulate, IsTheSameForTheSameSeed) {
  SimulateOptions options;
  options.windows = 5;
  const auto a = simulate(made_up(3, 1), options), b = simulate(made_up(3, 1), options);
  ASSERT_TRUE(a.ok() && b.ok());
  for (size_t i = 0; i < a->size(); ++i) EXPECT_EQ((*a)[i].accuracy, (*b)[i].accuracy);
}

TEST(Simulate, NothingDriftsWhereDomainsAreLearntOnce) {
  SimulateOptions options;
  options.windows = 30;
  options.stay = 1;
  const auto found = simulate(made_up(2, 3), options);
  ASSERT_TRUE(found.ok());
  EXPECT_LE(of(*found, Policy::kOptimised).retrainings, 6);  // each option of each at most once
}

TEST(Simulate, OptionsOutOfRangeAreRefused) {
  const auto refused = [](auto change) {
    SimulateOptions options;
    change(options);
    return check(options).code() == Code::kInvalidArgument;
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& o) { o.windows = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.stay = 2; }));
  EXPECT_TRUE(refused([](auto& o) { o.error = -1; }));
  EXPECT_TRUE(refused([](auto& o) { o.machine = -1; }));
  EXPECT_TRUE(refused([](auto& o) { o.applications = 100000; }));
}

}  // namespace
}  // namespace limber::sched
