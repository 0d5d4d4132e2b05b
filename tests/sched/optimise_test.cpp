#include "sched/optimise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"

namespace limber::sched {
namespace {

// Options whose retraining is as quick on more threads as `scaling` says: 1 is twice as fast on twice as
// many.
Application random_application(Random& random, size_t options, int threads, double scaling) {
  Application application;
  application.name = "a";
  application.importance = random.uniform(0.5, 2);
  if (random.below(3) == 0) application.minimum_accuracy = random.uniform(0.4, 0.9);
  for (size_t i = 0; i < options; ++i) {
    Option option;
    option.size = random.uniform(0.1, 1);
    option.before = random.uniform(0.2, 0.8);
    option.after = std::min(1.0, option.before + random.uniform(-0.05, 0.4));
    option.load = random.uniform(0, 0.15);
    const double once = random.uniform(10, 200);
    for (int k = 1; k <= threads && i % 5 != 4; ++k) option.seconds.push_back(once / std::pow(k, scaling));
    application.options.push_back(option);
  }
  return application;
}

std::vector<Application> random_applications(Random& random, size_t count, size_t options, int threads,
                                             double scaling) {
  std::vector<Application> applications;
  for (size_t i = 0; i < count; ++i)
    applications.push_back(random_application(random, options, threads, scaling));
  return applications;
}

// Every choice of every application, in every order, laid out thread by thread.
class BruteForce {
 public:
  BruteForce(const std::vector<Application>& applications, const Window& window)
      : applications_(applications), window_(window) {
    for (const Application& one : applications) importance_ += one.importance;
  }
  double best() {
    choices_.resize(applications_.size());
    choose(0);
    return best_;
  }

 private:
  void choose(size_t i) {
    if (i == applications_.size()) return try_orders();
    const auto& options = applications_[i].options;
    for (size_t o = 0; o < options.size(); ++o)
      for (int k = 0; k <= std::min(window_.threads, static_cast<int>(options[o].seconds.size())); ++k) {
        choices_[i] = {o, k};
        choose(i + 1);
      }
  }
  void try_orders() {
    std::vector<size_t> order;
    for (size_t i = 0; i < choices_.size(); ++i)
      if (choices_[i].threads > 0) order.push_back(i);
    double load = 0;
    for (size_t i = 0; i < choices_.size(); ++i) load += applications_[i].options[choices_[i].option].load;
    if (load > 1) return;
    do {
      best_ = std::max(best_, value(order, 1 - load));
    } while (std::next_permutation(order.begin(), order.end()));
  }
  double value(const std::vector<size_t>& order, double left) const {
    std::vector<double> ends(choices_.size(), window_.seconds);
    std::vector<double> free(static_cast<size_t>(window_.threads), 0.0);
    for (const size_t i : order) {
      const auto k = static_cast<size_t>(choices_[i].threads);
      std::sort(free.begin(), free.end());
      const double end = free[k - 1] + applications_[i].options[choices_[i].option].seconds[k - 1] / left;
      std::fill_n(free.begin(), k, end);
      ends[i] = std::min(end, window_.seconds);
    }
    double sum = 0;
    for (size_t i = 0; i < choices_.size(); ++i) {
      const Option& option = applications_[i].options[choices_[i].option];
      const double until = ends[i] / window_.seconds;
      sum += applications_[i].importance * (until * worth(applications_[i], option.before) +
                                            (1 - until) * worth(applications_[i], option.after));
    }
    return sum / importance_;
  }

  const std::vector<Application>& applications_;
  const Window& window_;
  double importance_ = 0, best_ = -1e9;
  std::vector<Choice> choices_;
};

TEST(Optimise, EqualsBruteForceOnTenThousandCases) {
  Random random(1);
  for (int round = 0; round < 10000; ++round) {
    const size_t count = 1 + random.below(3), options = 1 + random.below(count == 3 ? 2 : 4);
    const Window window{100, static_cast<int>(1 + random.below(count == 3 ? 2 : 3))};
    const auto applications =
        random_applications(random, count, options, window.threads, random.uniform(0.2, 1.1));
    const auto schedule = optimise(applications, window);
    ASSERT_TRUE(schedule.ok()) << schedule.status().message();
    ASSERT_TRUE(schedule->exact);
    ASSERT_NEAR(schedule->value, BruteForce(applications, window).best(), 1e-9) << "round " << round;
  }
}

TEST(Optimise, EqualsBruteForceWithFourApplications) {
  Random random(2);
  for (int round = 0; round < 40; ++round) {
    const Window window{100, 2};
    const auto applications = random_applications(random, 4, 2, 2, random.uniform(0.3, 1));
    const auto schedule = optimise(applications, window);
    ASSERT_TRUE(schedule.ok());
    ASSERT_NEAR(schedule->value, BruteForce(applications, window).best(), 1e-9) << "round " << round;
  }
}

TEST(Optimise, IsExactForFourApplicationsWithEightSizes) {
  Random random(3);
  for (int round = 0; round < 100; ++round) {
    const auto applications = random_applications(random, 4, 8, 2, random.uniform(0.3, 1));
    const auto schedule = optimise(applications, {200, 2});
    ASSERT_TRUE(schedule.ok());
    EXPECT_TRUE(schedule->exact);
    EXPECT_EQ(schedule->optimum_share(), 1);
  }
}

TEST(Optimise, SixtyFourApplicationsAreWithinOnePercentOfTheBound) {
  Random random(4);
  for (const double scaling : {0.5, 1.0}) {
    auto applications = random_applications(random, 64, 8, 2, scaling);
    for (Application& application : applications)
      for (Option& option : application.options) {
        option.load /= 10;
        for (double& seconds : option.seconds) seconds /= 10;
      }
    const auto schedule = optimise(applications, {200, 2});
    ASSERT_TRUE(schedule.ok());
    EXPECT_FALSE(schedule->exact);
    EXPECT_GE(schedule->optimum_share(), 0.99);
    EXPECT_LE(schedule->value, schedule->bound);
  }
}

TEST(Bound, IsAboveTheOptimum) {
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    const Window window{100, 2};
    const auto applications = random_applications(random, 3, 3, 2, random.uniform(0.2, 1.1));
    const auto exact = optimise(applications, window);
    OptimiseOptions large;
    large.exact_up_to = 0;
    large.tries = 500;
    const auto close = optimise(applications, window, large);
    ASSERT_TRUE(exact.ok() && close.ok());
    ASSERT_GE(close->bound, exact->value - 1e-9) << "round " << round;
    ASSERT_LE(close->value, exact->value + 1e-9) << "round " << round;
  }
}

Application plain(double before, double after, std::vector<double> seconds) {
  Application application;
  application.name = "plain";
  application.options = {{"whole", 1, before, after, std::move(seconds), 0, 0}};
  return application;
}

TEST(Optimise, OneAfterAnotherWhereThreadsHelpAndSideBySideWhereTheyDoNot) {
  const std::vector<Application> scaling(2, plain(0.5, 0.9, {80, 40}));
  const auto in_turn = optimise(scaling, {100, 2});
  ASSERT_TRUE(in_turn.ok());
  EXPECT_EQ(in_turn->decisions[0].threads, 2);
  EXPECT_EQ(in_turn->decisions[1].threads, 2);
  EXPECT_NE(in_turn->decisions[0].start_s, in_turn->decisions[1].start_s);

  const std::vector<Application> stubborn(2, plain(0.5, 0.9, {40, 39}));
  const auto beside = optimise(stubborn, {100, 2});
  ASSERT_TRUE(beside.ok());
  EXPECT_EQ(beside->decisions[0].threads, 1);
  EXPECT_EQ(beside->decisions[1].threads, 1);
  EXPECT_EQ(beside->decisions[0].start_s, 0);
  EXPECT_EQ(beside->decisions[1].start_s, 0);
}

// Shares that change whenever a retraining ends, chosen at random.
double side_by_side(Random& random, const std::vector<Application>& applications, const Window& window) {
  std::vector<double> left(applications.size(), 1.0), ends(applications.size(), window.seconds);
  double now = 0;
  while (now < window.seconds) {
    std::vector<double> shares(applications.size(), 0.0);
    double sum = 0;
    for (size_t i = 0; i < applications.size(); ++i)
      if (left[i] > 0) sum += shares[i] = random.uniform(0.01, 1);
    if (sum == 0) break;
    double step = window.seconds - now;
    for (size_t i = 0; i < applications.size(); ++i) {
      shares[i] *= window.threads / sum;
      if (left[i] > 0) step = std::min(step, left[i] / speed(applications[i].options[0], shares[i]));
    }
    now += step;
    for (size_t i = 0; i < applications.size(); ++i) {
      if (left[i] <= 0) continue;
      left[i] -= step * speed(applications[i].options[0], shares[i]);
      if (left[i] < 1e-9) left[i] = 0, ends[i] = now;
    }
  }
  double sum = 0;
  for (size_t i = 0; i < applications.size(); ++i) {
    const Option& option = applications[i].options[0];
    sum += option.after - (option.after - option.before) * ends[i] / window.seconds;
  }
  return sum / static_cast<double>(applications.size());
}

TEST(Optimise, NoSharesBeatTurnsWhereTwiceTheThreadsAreTwiceAsFast) {
  Random random(6);
  for (int round = 0; round < 50; ++round) {
    std::vector<Application> applications;
    for (int i = 0; i < 3; ++i) {
      const double seconds = random.uniform(20, 120), before = random.uniform(0.3, 0.7);
      applications.push_back(plain(before, before + random.uniform(0, 0.3), {seconds, seconds / 2}));
    }
    const auto schedule = optimise(applications, {100, 2});
    ASSERT_TRUE(schedule.ok());
    for (int shares = 0; shares < 50; ++shares)
      ASSERT_LE(side_by_side(random, applications, {100, 2}), schedule->accuracy + 1e-9);
  }
}

TEST(Optimise, TheImportantAndThoseBelowTheirMinimumComeFirst) {
  std::vector<Application> applications(2, plain(0.5, 0.9, {80, 40}));
  applications[1].importance = 3;
  auto schedule = optimise(applications, {100, 2});
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ(retraining_order(*schedule), (std::vector<size_t>{1, 0}));
  applications[1].importance = 1;
  applications[0].minimum_accuracy = 0.8;
  schedule = optimise(applications, {100, 2});
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ(retraining_order(*schedule), (std::vector<size_t>{0, 1}));
  EXPECT_LT(schedule->value, schedule->accuracy);
}

TEST(Optimise, KeepsLatencyAndTheMachine) {
  Application application = plain(0.9, 0.95, {10});
  application.options[0].latency_s = 0.02;
  application.options.push_back({"half", 0.5, 0.7, 0.8, {10}, 0.005, 0.3});
  application.latency_budget_s = 0.01;
  auto schedule = optimise(std::vector<Application>{application}, {100, 1});
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ(schedule->decisions[0].option, 1u);
  EXPECT_NEAR(schedule->decisions[0].end_s, 10 / 0.7, 1e-9);  // answering takes the rest

  application.latency_budget_s = 0.001;
  EXPECT_EQ(optimise(std::vector<Application>{application}, {100, 1}).status().code(),
            Code::kInvalidArgument);
  application.latency_budget_s = 0.01;
  EXPECT_EQ(optimise(std::vector<Application>(4, application), {100, 1}).status().code(),
            Code::kResourceExhausted);
}

TEST(Optimise, DoesNotRetrainWhatGetsWorseOrWouldNotEnd) {
  const std::vector<Application> applications = {plain(0.8, 0.7, {1, 1}), plain(0.5, 0.9, {300, 150})};
  const auto schedule = optimise(applications, {100, 2});
  ASSERT_TRUE(schedule.ok());
  EXPECT_TRUE(retraining_order(*schedule).empty());
  EXPECT_NEAR(schedule->accuracy, 0.65, 1e-12);
}

TEST(Optimise, IsTheSameForTheSameInput) {
  Random random(7);
  const auto applications = random_applications(random, 12, 4, 2, 0.7);
  const auto a = optimise(applications, {200, 2}), b = optimise(applications, {200, 2});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->decisions, b->decisions);
}

TEST(SchedApplication, NumbersOutOfRangeAreRefused) {
  const auto refused = [](auto change) {
    std::vector<Application> applications = {plain(0.5, 0.9, {80, 40})};
    Window window;
    change(applications, window);
    return check(applications, window).code() == Code::kInvalidArgument;
  };
  EXPECT_FALSE(refused([](auto&, auto&) {}));
  EXPECT_TRUE(refused([](auto& a, auto&) { a.clear(); }));
  EXPECT_TRUE(refused([](auto& a, auto&) { a[0].options.clear(); }));
  EXPECT_TRUE(refused([](auto& a, auto&) { a[0].importance = 0; }));
  EXPECT_TRUE(refused([](auto& a, auto&) { a[0].options[0].after = 1.5; }));
  EXPECT_TRUE(refused([](auto& a, auto&) { a[0].options[0].seconds[1] = 0; }));
  EXPECT_TRUE(refused([](auto& a, auto&) { a[0].options[0].load = std::nan(""); }));
  EXPECT_TRUE(refused([](auto&, auto& w) { w.seconds = 0; }));
  EXPECT_TRUE(refused([](auto&, auto& w) { w.threads = 1000; }));
}

}  // namespace
}  // namespace limber::sched
