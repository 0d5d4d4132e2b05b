#include "serve/governor.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/random.h"

namespace limber {
namespace {

// 10, 6, 3 and 1 ms at falling accuracy.
std::shared_ptr<const ChoiceIndex> four() {
  return std::make_shared<const ChoiceIndex>(
      std::vector<ChoicePoint>{
          {0.010, 0, 0, 0.92}, {0.006, 0, 0, 0.90}, {0.003, 0, 0, 0.85}, {0.001, 0, 0, 0.70}},
      ChoiceWeights{});
}

GovernorOptions within(double budget_s, Policy policy = Policy::kFeedback) {
  GovernorOptions options;
  options.policy = policy;
  options.budget_s = budget_s;
  return options;
}

Situation at(double now, double slowdown, double stall_s = 0, double rate = 1) {
  return {.now = now, .slowdown = {slowdown, stall_s, 20}, .rate = rate};
}

struct Played {
  std::vector<std::pair<double, int>> switches;
  int last = -1;
};

// Decides every 50 ms.
Played play(Governor& governor, double seconds, const std::function<Situation(double)>& situation) {
  Played played;
  for (double t = 0; t < seconds; t += 0.05) {
    const Decision decision = governor.decide(situation(t));
    if (decision.changed) played.switches.emplace_back(t, decision.variant);
    played.last = decision.variant;
  }
  return played;
}

TEST(Governor, BeginsWithTheBestThatFitsAnIdleMachine) {
  EXPECT_EQ(Governor(four(), within(0.015)).active(), 0);
  EXPECT_EQ(Governor(four(), within(0.008)).active(), 1);
  EXPECT_EQ(Governor(four(), within(0.0005)).active(), 3);  // nothing fits: the quickest
  EXPECT_EQ(Governor(four(), within(0.008, Policy::kFixed)).active(), 0);
}

TEST(Governor, GoesDownAtOnceAndBackAfterACalm) {
  Governor governor(four(), within(0.015));
  const auto played = play(governor, 20, [](double t) { return at(t, t > 2 && t < 8 ? 3.0 : 1.0); });
  ASSERT_EQ(played.switches.size(), 2U);
  EXPECT_NEAR(played.switches[0].first, 2.05, 0.06);
  EXPECT_EQ(played.switches[0].second, 2);  // 3 · 3 ms fit into 15, 3 · 6 do not
  EXPECT_GE(played.switches[1].first, 8 + governor.options().calm_s - 0.06);
  EXPECT_EQ(played.switches[1].second, 0);
}

TEST(Governor, ARequestOfManyRowsIsAsMuchWork) {
  Governor governor(four(), within(0.015));
  const auto played = play(governor, 5, [](double t) {
    Situation situation = at(t, 1);
    situation.size = 4;  // 4 · 3 ms fit, 4 · 6 do not
    return situation;
  });
  EXPECT_EQ(played.last, 2);
}

TEST(Governor, AStallIsNoFactor) {
  // Every request loses 7 ms, however quick the variant is: 6 ms still fit, and going down further gains
  // nothing.
  Governor governor(four(), within(0.015));
  const auto played = play(governor, 5, [](double t) { return at(t, 1, 0.007); });
  EXPECT_EQ(played.last, 1);
  EXPECT_EQ(played.switches.size(), 1U);
}

TEST(Governor, CountsWaiting) {
  // At 90 requests a second 10 ms fill a worker to nine tenths: nearly all of the time goes into waiting.
  // With 6 ms a quarter of the requests wait, and few of them for long.
  Governor governor(four(), within(0.015));
  EXPECT_EQ(play(governor, 3, [](double t) { return at(t, 1, 0, 90); }).last, 1);
  GovernorOptions two = within(0.015);
  two.workers = 2;
  Governor shared(four(), two);
  EXPECT_EQ(play(shared, 3, [](double t) { return at(t, 1, 0, 90); }).last, 0);
  // More than a worker can do at all.
  Governor flooded(four(), within(0.015));
  EXPECT_EQ(play(flooded, 3, [](double t) { return at(t, 1, 0, 500); }).last, 3);
}

// Two workers that are used to six tenths answer nine of ten requests within twice the time of one. Somebody
// who goes by that gives a tenth more, and wants the original back when the neighbour has gone.
TEST(Governor, TakesTheOriginalBackWithinATightBudget) {
  GovernorOptions options = within(0.022);
  options.workers = 2;
  Governor governor(four(), options);
  const auto played = play(governor, 12, [](double t) {
    Situation situation = at(t, t > 2 && t < 6 ? 3.0 : 1.02, 0.0003, 120);
    situation.slowdown.error = 0.01;
    return situation;
  });
  EXPECT_EQ(played.last, 0);
  EXPECT_EQ(played.switches.size(), 2U);
}

// 1.4 times 10 ms fit into 15, but who knows whether it is 1.4.
TEST(Governor, WantsMoreRoomWhereMeasurementsVary) {
  for (const double error : {0.01, 0.1}) {
    Governor governor(four(), within(0.015));
    const auto played = play(governor, 10, [&](double t) {
      Situation situation = at(t, t < 2 ? 3 : 1.4);
      situation.slowdown.error = error;
      return situation;
    });
    EXPECT_EQ(played.last, error < 0.05 ? 0 : 1) << error;
  }
}

TEST(Governor, SaysWhenNothingFits) {
  Governor governor(four(), within(0.015));
  Decision decision = governor.decide(at(1, 40));
  EXPECT_TRUE(decision.nothing_fits);
  EXPECT_EQ(decision.variant, 3);
  EXPECT_NE(decision.reason.find("the quickest"), std::string::npos) << decision.reason;
  EXPECT_FALSE(governor.decide(at(2, 1)).nothing_fits);
}

TEST(Governor, NeverSwitchesTwiceWithinTheDwell) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    Governor governor(four(), within(0.015, seed % 2 == 0 ? Policy::kFeedback : Policy::kForecast));
    double before = -1;
    for (double t = 0; t < 60; t += 0.05) {
      Situation s = at(t, random.uniform(0.5, 12), random.uniform(0, 0.02), random.uniform(0, 300));
      s.load = random.uniform();
      s.expected_load = random.uniform();
      if (!governor.decide(s).changed) continue;
      ASSERT_TRUE(before < 0 || t - before >= governor.options().dwell_s - 1e-9) << "seed " << seed;
      before = t;
    }
  }
}

TEST(Governor, DoesNotFlapOnNoiseAroundALimit) {
  // 10 ms · 1.5 is the budget to the bit: noise crosses it all the time.
  Governor governor(four(), within(0.015));
  Random random(3);
  const auto played = play(governor, 120, [&](double t) { return at(t, 1.5 + 0.1 * random.normal()); });
  EXPECT_LE(played.switches.size(), 3U);
}

TEST(Governor, GoingBackTooEarlyMakesItPatient) {
  // Idle for two seconds, busy for one, again and again.
  Governor governor(four(), within(0.015));
  const auto played = play(governor, 120, [](double t) { return at(t, std::fmod(t, 3) < 2 ? 1.0 : 4.0); });
  EXPECT_LE(played.switches.size(), 12U);
  EXPECT_GE(played.switches.size(), 2U);
}

// What takes no longer than a neighbour leaves it at a time does not feel the neighbour: it seems that all is
// well, and the original fails again and again. So later returns go half of the way, and what holds stays.
TEST(Governor, AfterAReturnThatFailedItGoesHalfOfTheWay) {
  Governor governor(four(), within(0.015));
  const auto played = play(governor, 60, [&](double t) {
    Situation situation = at(t, governor.active() == 0 ? 4 : governor.active() == 1 ? 1.5 : 1);
    situation.load = 0.5;
    return situation;
  });
  EXPECT_EQ(played.last, 1);
  EXPECT_LE(played.switches.size(), 8U);
}

TEST(Governor, AReturnThatFailedIsForgivenWhenTheLoadHasGone) {
  for (const double load_then : {0.5, 0.0}) {
    Governor governor(four(), within(0.015));
    // Again and again too early, and then nothing is in the way any more.
    const auto played = play(governor, 44, [&](double t) {
      Situation situation = at(t, t < 40 && governor.active() <= 1 ? 6 : 1);
      situation.load = t < 40 ? 0.5 : load_then;
      return situation;
    });
    EXPECT_EQ(played.last == 0, load_then == 0) << load_then;
  }
}

TEST(Governor, ForecastGoesDownBeforeTheLoadIsThere) {
  const auto situation = [](double t) {
    // The load rises over two seconds, slowdown with it; half a second ahead it is known.
    const auto load = [](double s) { return std::clamp((s - 4) / 2, 0.0, 1.0); };
    Situation s = at(t, 1 + 3 * load(t));
    s.load = load(t);
    s.expected_load = load(t + 0.5);
    return s;
  };
  Governor feedback(four(), within(0.015, Policy::kFeedback)),
      forecast(four(), within(0.015, Policy::kForecast));
  const auto slow = play(feedback, 10, situation), quick = play(forecast, 10, situation);
  ASSERT_FALSE(slow.switches.empty());
  ASSERT_FALSE(quick.switches.empty());
  EXPECT_LT(quick.switches[0].first, slow.switches[0].first);
  EXPECT_EQ(quick.last, slow.last);
}

TEST(Governor, KeepsLimitsBesideLatency) {
  GovernorOptions options = within(0.015);
  options.limits.accuracy = 0.8;
  Governor governor(four(), options);
  EXPECT_EQ(play(governor, 3, [](double t) { return at(t, 4); }).last, 2);
}

TEST(Governor, ExplainsItself) {
  Governor governor(four(), within(0.015));
  Situation s = at(1, 3);
  s.load = 0.52;
  const Decision decision = governor.decide(s);
  ASSERT_TRUE(decision.changed);
  EXPECT_EQ(decision.reason,
            "expected 30.00 ms exceeds 15.00 ms; work takes 3.00 times as long, others use 52 %");
}

TEST(Slowdown, TellsFactorsFromStalls) {
  SlowdownMeter meter;
  EXPECT_EQ(meter.read(0).samples, 0U);
  EXPECT_EQ(meter.read(0).slowdown, 1);
  for (int i = 0; i < 40; ++i) meter.add(0.01 * i, 0.002, 0.004 + (i % 5 == 0 ? 0.010 : 0));
  const Slowdown s = meter.read(0.4);
  EXPECT_DOUBLE_EQ(s.slowdown, 2);
  EXPECT_NEAR(s.stall_s, 0.010, 1e-12);
  EXPECT_NEAR(s.predict(0.001), 0.012, 1e-12);
  // Old ones are forgotten, and what was known last stays known.
  for (int i = 0; i < 10; ++i) meter.add(2, 0.002, 0.002);
  EXPECT_DOUBLE_EQ(meter.read(2).slowdown, 1);
  EXPECT_DOUBLE_EQ(meter.read(60).slowdown, 1);
  EXPECT_EQ(meter.read(60).samples, 0U);
}

// A neighbour shows before half of what is remembered is of its time.
TEST(Slowdown, WhatIsNewAndWorseIsBelievedSoon) {
  SlowdownMeter meter;
  for (int i = 0; i < 40; ++i) meter.add(0.01 * i, 0.002, 0.002);
  for (int i = 40; i < 46; ++i) meter.add(0.01 * i, 0.002, 0.006);
  EXPECT_DOUBLE_EQ(meter.read(0.46).slowdown, 3);
  // That it is better is believed when most say so.
  for (int i = 46; i < 66; ++i) meter.add(0.01 * i, 0.002, 0.006);
  for (int i = 66; i < 80; ++i) meter.add(0.01 * i, 0.002, 0.002);
  EXPECT_DOUBLE_EQ(meter.read(0.80).slowdown, 3);
}

TEST(Slowdown, SaysHowSureItIs) {
  Random random(7);
  SlowdownMeter quiet, restless;
  for (int i = 0; i < 50; ++i) {
    quiet.add(0.01 * i, 0.002, 0.002 * (1 + 0.01 * random.normal()));
    restless.add(0.01 * i, 0.002, 0.002 * (1 + 0.3 * random.uniform(-1, 1)));
  }
  EXPECT_LT(quiet.read(0.5).error, 0.005);
  EXPECT_GT(restless.read(0.5).error, 0.02);
}

TEST(LoadResponse, LearnsHowLoadSlows) {
  LoadResponse response;
  EXPECT_NEAR(response.growth(0, 1), 2, 1e-9);
  Random random(5);
  for (int i = 0; i < 500; ++i) {
    const double load = random.uniform();
    response.add(load, 1 + 4 * load + 0.05 * random.normal());
  }
  EXPECT_NEAR(response.growth(0, 1), 5, 0.3);
  EXPECT_EQ(response.growth(0.8, 0.2), 1);
}

}  // namespace
}  // namespace limber
