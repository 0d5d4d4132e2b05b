// The governor, the meter and the rescue together, against a machine that is played: requests come at random,
// two workers answer them, neighbours take time slices of their cores.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "base/random.h"
#include "serve/governor.h"
#include "serve/rescue.h"

namespace limber {
namespace {

constexpr double kOriginal_s = 0.0065, kRate = 185;  // uses two workers to six tenths
constexpr double kBudget_s = 0.0145;                 // 1.1 times what nine of ten take then, idle
constexpr double kSlice_s = 0.003;                   // of a neighbour that has the core

std::shared_ptr<const ChoiceIndex> steps() {
  std::vector<ChoicePoint> points;
  for (const auto& [share, accuracy] : {std::pair(1.0, 0.90), {0.8, 0.89}, {0.6, 0.88}, {0.4, 0.85}})
    points.push_back({share * kOriginal_s, 0, 0, accuracy});
  return std::make_shared<const ChoiceIndex>(std::move(points), ChoiceWeights{});
}

struct Day {
  std::vector<bool> busy = {false, false};  // by core, in the middle of the day
  double rush = 1;                          // by how much more requests come then
  double gap_s = 0;                         // that one of ten runs loses then, whatever it takes
};

struct Outcome {
  int requests = 0, missed = 0;
  double right = 0;
  int switches = 0, last = -1;
  double missed_share() const { return static_cast<double>(missed) / requests; }
  double accuracy() const { return right / requests; }
};

class PlayedServer {
 public:
  PlayedServer(Policy policy, const Day& day) : day_(day), governor_(steps(), options(policy)) {
    if (policy == Policy::kFixed) governor_.use(steps(), 0, {});
  }

  // Ten seconds idle, twenty as the day has it, ten idle.
  Outcome play() {
    double arrives = 0, ticks = 0;
    while (arrives < 40 || !queue_.empty()) {
      const auto worker = static_cast<size_t>(std::min_element(free_.begin(), free_.end()) - free_.begin());
      const double takes = queue_.empty() ? 1e9 : std::max(free_[worker], queue_.front());
      const double next = std::min({arrives < 40 ? arrives : 1e9, ticks, takes});
      if (next == ticks) {
        decide(ticks);
        ticks += 0.05;
      } else if (next == takes) {
        serve(worker, takes);
      } else {
        queue_.push_back(arrives);
        came_.push_back(arrives);
        const double rate = kRate * (middle(arrives) && std::fmod(arrives, 2) < 0.5 ? day_.rush : 1);
        arrives -= std::log(1 - random_.uniform()) / rate;
      }
    }
    outcome_.last = governor_.active();
    return outcome_;
  }

 private:
  static GovernorOptions options(Policy policy) {
    GovernorOptions options;
    options.policy = policy;
    options.budget_s = kBudget_s;
    options.workers = 2;
    return options;
  }
  static bool middle(double t) { return t >= 10 && t < 30; }

  void decide(double now) {
    while (!ended_.empty() && ended_.front().time <= now) {
      meter_.add(ended_.front().time, ended_.front().estimated_s, ended_.front().actual_s);
      ended_.pop_front();
    }
    while (!came_.empty() && came_.front() < now - 1) came_.pop_front();
    slowdown_ = meter_.read(now).within(kBudget_s);
    const auto rate = static_cast<double>(came_.size());
    outcome_.switches += governor_.decide({.now = now, .slowdown = slowdown_, .rate = rate}).changed ? 1 : 0;
  }

  // As ServedModel does.
  int variant(double now) const {
    const ChoiceIndex& index = governor_.index();
    if (governor_.options().policy == Policy::kFixed) return governor_.active();
    const int quickest = static_cast<int>(index.size()) - 1;
    const auto times = [&](int number) {
      const double seconds = index.point(number).latency_s;
      return VariantTimes{seconds, seconds};
    };
    LongestTurn turn(2, slowdown_.stall_s, slowdown_.slowdown * times(quickest).row_s);
    for (const double arrived : queue_) turn.add({arrived + kBudget_s - now, 1});
    const QueueHead head{{queue_.front() + kBudget_s - now, 1}, turn.seconds(), queue_.size() > 1, slowdown_};
    const auto other = variant_for_head(head, times(governor_.active()), index.size(),
                                        [&](size_t i) { return times(quickest - static_cast<int>(i)); });
    return other ? quickest - static_cast<int>(*other) : governor_.active();
  }

  void serve(size_t worker, double now) {
    const ChoicePoint& with = governor_.index().point(variant(now));
    double actual = with.latency_s * (1 + 0.02 * random_.uniform());
    // A neighbour's turn comes after each slice of ours.
    if (middle(now) && day_.busy[worker])
      actual += kSlice_s * std::floor(with.latency_s / kSlice_s + 0.5 * random_.uniform());
    if (middle(now) && random_.uniform() < 0.1) actual += day_.gap_s;
    const double arrived = queue_.front();
    queue_.pop_front();
    free_[worker] = now + actual;
    const Ended ended{free_[worker], with.latency_s, actual};
    ended_.insert(std::upper_bound(ended_.begin(), ended_.end(), ended,
                                   [](const Ended& a, const Ended& b) { return a.time < b.time; }),
                  ended);
    ++outcome_.requests;
    outcome_.missed += free_[worker] - arrived > kBudget_s ? 1 : 0;
    outcome_.right += with.accuracy;
  }

  struct Ended {
    double time = 0, estimated_s = 0, actual_s = 0;
  };
  const Day day_;
  Random random_{5};
  Governor governor_;
  SlowdownMeter meter_;
  Slowdown slowdown_;
  std::deque<double> queue_, came_;  // when each arrived
  std::deque<Ended> ended_;
  std::vector<double> free_ = {0, 0};  // when each worker is
  Outcome outcome_;
};

TEST(ClosedLoop, AnIdleMachineServesTheOriginal) {
  const Outcome outcome = PlayedServer(Policy::kFeedback, {}).play();
  EXPECT_LE(outcome.missed_share(), 0.01);
  EXPECT_GE(outcome.accuracy(), 0.895);  // of 0.90: a few that waited are saved by quicker variants
  EXPECT_EQ(outcome.last, 0);
}

TEST(ClosedLoop, NeighboursCostAccuracyAndNotTheBudget) {
  const Day day{.busy = {true, true}};
  const Outcome fixed = PlayedServer(Policy::kFixed, day).play();
  const Outcome ours = PlayedServer(Policy::kFeedback, day).play();
  EXPECT_GE(fixed.missed_share(), 0.4);
  EXPECT_LE(ours.missed_share(), 0.02);
  EXPECT_GE(ours.accuracy(), 0.86);
  EXPECT_EQ(ours.last, 0);  // back again
}

// Somebody takes the machine away for longer than the budget, now and then. No variant helps against that, so
// the answers may as well be right.
TEST(ClosedLoop, WhatNoVariantCanMendCostsNoAccuracy) {
  const Day day{.gap_s = 1.5 * kBudget_s};
  const Outcome fixed = PlayedServer(Policy::kFixed, day).play();
  const Outcome ours = PlayedServer(Policy::kFeedback, day).play();
  EXPECT_LE(ours.missed_share(), fixed.missed_share());
  EXPECT_GE(ours.accuracy(), 0.88);
  EXPECT_EQ(ours.last, 0);
}

TEST(ClosedLoop, AQueueIsSharedOut) {
  const Day day{.rush = 3};  // half a second in two
  const Outcome fixed = PlayedServer(Policy::kFixed, day).play();
  const Outcome ours = PlayedServer(Policy::kFeedback, day).play();
  EXPECT_GE(fixed.missed_share(), 0.3);
  EXPECT_LE(ours.missed_share(), 0.05);
  EXPECT_GE(ours.accuracy(), 0.87);
}

}  // namespace
}  // namespace limber
