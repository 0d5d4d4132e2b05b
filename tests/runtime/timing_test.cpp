#include "runtime/timing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/clock.h"

namespace limber {
namespace {

// Takes its time, or several times that in the runs that a busy machine is said to hit.
struct Work {
  double seconds;
  int runs = 0;

  void take(double slowness) {
    ++runs;
    const double until = now_seconds() + slowness * seconds;
    while (now_seconds() < until) {
    }
  }
};

TEST(Timing, TheQuickTimeIsTheLowerQuartile) {
  EXPECT_EQ(quick_time({}), 0);
  EXPECT_EQ(quick_time({3}), 3);
  EXPECT_EQ(quick_time({4, 1, 3, 2}), 2);
  EXPECT_EQ(quick_time({8, 7, 6, 5, 4, 3, 2, 1}), 3);
}

TEST(Timing, RunsAsOftenAsAsked) {
  int runs = 0;
  const TimingOptions options{.seconds = 0, .min_rounds = 5, .runs = 4, .warm_up = 3};
  ASSERT_TRUE(time_quick([&] { return ++runs, Status(); }, options).ok());
  EXPECT_EQ(runs, 3 + 5 * 4);
}

TEST(Timing, StopsAtTheMostRounds) {
  TurnTimer timer({.seconds = 1e9, .max_rounds = 6});
  timer.add([](std::vector<double>&) { return Status(); });
  ASSERT_TRUE(timer.run().ok());
  EXPECT_EQ(timer.rounds(), 6);
}

// A run that takes long finds the caches as cold whatever ran before it.
TEST(Timing, OnlyShortRunsAreRepeatedForTheCaches) {
  for (const bool slow : {false, true}) {
    int runs = 0;
    TurnTimer timer({.seconds = 0, .min_rounds = 2, .runs = 1, .warm_up = 0});
    timer.add([&](std::vector<double>&) {
      if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(101));
      return ++runs, Status();
    });
    timer.add([](std::vector<double>&) { return Status(); });
    ASSERT_TRUE(timer.run().ok());
    EXPECT_EQ(runs, slow ? 3 : 4);
  }
}

TEST(Timing, OfEachRunUntilThereAreEnough) {
  int runs = 0;
  const auto run = [&] { return ++runs, Status(); };
  EXPECT_EQ(time_each(run, 0, 7)->size(), 7U);
  EXPECT_EQ(time_each(run, 1e9, 1, 5)->size(), 5U);
  EXPECT_EQ(runs, 12);
  EXPECT_GT(time_each(run, 0.02, 1)->size(), 1U);
  const auto sleep = [] { return std::this_thread::sleep_for(std::chrono::milliseconds(2)), Status(); };
  const auto slept = time_each(sleep, 0, 3);
  ASSERT_TRUE(slept.ok());
  for (const double seconds : *slept) EXPECT_GE(seconds, 0.002);
  EXPECT_EQ(time_each([] { return invalid("no"); }, 0, 3).status().message(), "no");
}

TEST(Timing, BurstsOfOtherLoadDoNotCount) {
  Work work{1e-4};
  // Half of the rounds are hit as a whole; of the others, every other run.
  const auto run = [&](std::vector<double>&) {
    const int round = work.runs / 3;
    work.take(round % 2 == 0 ? 5 : 1 + 4 * (work.runs % 2));
    return Status();
  };
  TurnTimer timer({.min_rounds = 12, .max_rounds = 12, .warm_up = 0});
  timer.add(run);
  ASSERT_TRUE(timer.run().ok());
  EXPECT_LT(timer.seconds(0), 3e-4);
}

TEST(Timing, PartsAreThoseOfTheRunThatCounts) {
  int runs = 0;
  TurnTimer timer({.seconds = 0, .warm_up = 0});
  timer.add([&](std::vector<double>& parts) {
    Work{++runs % 3 == 2 ? 1e-5 : 1e-3}.take(1);  // the second of the three runs of a round is the quickest
    parts = {static_cast<double>(runs % 3), 7};
    return Status();
  });
  ASSERT_TRUE(timer.run().ok());
  EXPECT_EQ(timer.part_seconds(0), (std::vector<double>{2, 7}));
}

TEST(Timing, WhatIsComparedMeetsTheSameMachine) {
  // The machine gets twice as slow for two rounds in three: the ratio of the two stays what it is.
  Work one{2e-4}, two{4e-4};
  const auto run = [](Work& work) {
    return [&work](std::vector<double>&) {
      work.take(work.runs / 4 % 3 == 0 ? 1 : 2);
      return Status();
    };
  };
  TurnTimer timer({.min_rounds = 12, .max_rounds = 12, .warm_up = 0});
  timer.add(run(one));
  timer.add(run(two));
  ASSERT_TRUE(timer.run().ok());
  EXPECT_NEAR(timer.seconds(1) / timer.seconds(0), 2, 0.5);
}

TEST(Timing, AFailureEndsIt) {
  TurnTimer timer;
  timer.add([](std::vector<double>&) { return error(Code::kIo, "broken"); });
  EXPECT_EQ(timer.run().message(), "broken");
}

TEST(Timing, CanBeStopped) {
  std::atomic<bool> stop{true};
  TurnTimer timer;
  timer.add([](std::vector<double>&) { return Status(); });
  EXPECT_EQ(timer.run(&stop).code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace limber
