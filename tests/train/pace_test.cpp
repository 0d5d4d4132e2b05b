#include "train/pace.h"

#include <gtest/gtest.h>

#include "tests/train/training_case.h"

namespace limber::test {
namespace {

// A clock that goes when it is told to.
struct HandClock {
  double now = 100;
  Pace pace(const TimeLimit& limit) {
    return Pace(limit, now, [this] { return now; });
  }
  void update(Pace& pace, double seconds) {
    now += seconds;
    pace.count_update(seconds);
  }
};

TEST(Pace, EndsWithRoomForWhatComesLast) {
  HandClock clock;
  Pace pace = clock.pace({.seconds = 10});
  clock.now += 2;  // reading images
  pace.set_reserve(1);
  EXPECT_EQ(pace.done(), 0);
  int updates = 0;
  for (; !pace.over(); ++updates) clock.update(pace, 0.5);
  EXPECT_EQ(updates, 14);  // (10 - 2 - 1) / 0.5
  EXPECT_LE(pace.spent() + 1, 10 + 0.25);
  EXPECT_NEAR(pace.done(), 1, 1e-9);
}

TEST(Pace, WhatElseTakesTimeIsTakenFromTheUpdates) {
  HandClock clock;
  Pace pace = clock.pace({.seconds = 10});
  for (int i = 0; i < 4; ++i) clock.update(pace, 1);
  EXPECT_NEAR(pace.done(), 0.4, 1e-9);
  EXPECT_EQ(pace.expected_updates(4), 10);
  clock.now += 2;  // an evaluation
  EXPECT_NEAR(pace.done(), 0.5, 1e-9);
  EXPECT_EQ(pace.expected_updates(4), 8);
}

TEST(Pace, ASpeedUpIsMeasuredByTheFirstUpdates) {
  HandClock clock;
  Pace pace = clock.pace({.speedup = 4});
  clock.now += 3;
  clock.update(pace, 9);  // memory of the first is new
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(pace.can_settle());
    EXPECT_FALSE(pace.over());
    EXPECT_EQ(pace.done(), 0);
    clock.update(pace, i == 2 ? 5 : 1);  // something disturbed one of them
  }
  ASSERT_TRUE(pace.can_settle());
  pace.settle(100, 20);
  EXPECT_NEAR(pace.whole(), 3 + 9 + 9 + 100 * 1 + 20, 1e-9);
  EXPECT_NEAR(pace.limit(), pace.whole() / 4, 1e-9);
  EXPECT_FALSE(pace.can_settle());
}

// What a process before this one did is behind, and counted once.
TEST(Pace, ASpeedUpThatIsMeasuredLateCountsNothingTwice) {
  HandClock clock;
  Pace before = clock.pace({.speedup = 2});
  for (int i = 0; i < 4; ++i) clock.update(before, 1);
  Pace after = clock.pace({.speedup = 2});
  ASSERT_TRUE(after.restore(before.note()).ok());
  for (int i = 0; i < 6; ++i) clock.update(after, 1);
  ASSERT_TRUE(after.can_settle());
  after.settle(100 - 10, 0);
  EXPECT_NEAR(after.whole(), 100, 1e-9);
}

TEST(Pace, GoesOnWithWhatWasSpent) {
  HandClock clock;
  Pace before = clock.pace({.seconds = 10});
  for (int i = 0; i < 6; ++i) clock.update(before, 1);
  const std::string note = before.note();
  clock.now += 1000;  // nobody trains
  Pace after = clock.pace({.seconds = 10});
  ASSERT_TRUE(after.restore(note).ok());
  EXPECT_NEAR(after.spent(), 6, 1e-9);
  EXPECT_NEAR(after.done(), 0.6, 1e-9);
  Pace damaged = clock.pace({.seconds = 10});
  EXPECT_EQ(damaged.restore("{}").code(), Code::kCorrupt);
  EXPECT_EQ(damaged.restore(R"({"spent_s":-1,"updating_s":0,"limit_s":0,"whole_s":0})").code(),
            Code::kCorrupt);
}

// Counts updates and remembers the learning rates; the length is the trainer's own.
class Rates : public TrainerHook {
 public:
  Status on_begin(TrainingSession&, const TrainingState&, const TrainingLength& length) override {
    length_ = &length;
    begins_at = length.done;
    return {};
  }
  Status on_step_end(TrainingSession&, const StepReport& report) override {
    rates.push_back(report.rate);
    shares.push_back(length_->done);
    lasts += report.last ? 1 : 0;
    return {};
  }
  std::vector<double> rates, shares;
  double begins_at = -1;
  int lasts = 0;

 private:
  const TrainingLength* length_ = nullptr;
};

// A clock that goes a little whenever somebody looks at it.
struct TickingClock {
  double now = 100;
  void give(TrainerInputs& inputs) {
    inputs.clock = [this] { return now += 0.005; };
    inputs.began = now;
  }
};

TEST(TimedTrainer, TrainsUntilTheTimeIsOverAndTheRateIsNone) {
  const Folder temp;
  auto folder = *RunFolder::open(temp / "run");
  Rates rates;
  TickingClock clock;
  TrainerInputs inputs = tiny_inputs(folder.get());
  clock.give(inputs);
  inputs.hooks = {&rates};
  TrainerOptions options = tiny_options(1);
  options.time.seconds = 3;
  const auto trainer = Trainer::create(std::move(inputs), options);
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  const auto summary = (*trainer)->run();
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->ending, Ending::kFinished);
  ASSERT_GT(rates.rates.size(), 5U);  // more than the epoch that options name
  EXPECT_EQ(rates.lasts, 1);
  EXPECT_GT(rates.rates.front(), 0.09);
  EXPECT_LT(rates.rates.back(), 0.01);
  EXPECT_GT(rates.shares.back(), 0.9);
  ASSERT_FALSE(summary->epochs.empty());
  EXPECT_TRUE(summary->epochs.back().validation.has_value());
  EXPECT_EQ(summary->state.batch, 0);
  std::vector<std::string> warnings;
  const auto last = folder->load_last(warnings);
  ASSERT_TRUE(last.ok() && last->has_value());
  EXPECT_EQ((*last)->info.state.step, summary->state.step);
}

TEST(TimedTrainer, GoesOnForWhatIsLeftOfTheTime) {
  const Folder temp;
  auto folder = *RunFolder::open(temp / "run");
  std::atomic<bool> stop{true};
  TrainerOptions options = tiny_options();
  options.time.seconds = 20;
  OptionTexts notes;
  TickingClock clock;
  {
    TrainerInputs inputs = tiny_inputs(folder.get());
    inputs.stop = &stop;
    clock.give(inputs);
    inputs.began -= 17;  // it took long to begin
    const auto trainer = Trainer::create(std::move(inputs), options);
    ASSERT_TRUE(trainer.ok() && (*trainer)->run()->ending == Ending::kStopped);
    std::vector<std::string> warnings;
    notes = (*folder->load_last(warnings))->info.notes;
  }
  TrainerInputs inputs = tiny_inputs(folder.get());
  clock.give(inputs);
  inputs.notes = notes;
  const auto trainer = Trainer::create(std::move(inputs), options);
  ASSERT_TRUE(trainer.ok());
  ASSERT_TRUE((*trainer)->run().ok());
  EXPECT_GE((*trainer)->pace().spent(), 17);
  EXPECT_LT((*trainer)->pace().spent(), 21);
}

// Whoever decides by how far a training is must not take one that goes on for one that begins.
TEST(Trainer, WhatIsBehindIsKnownBeforeTheFirstUpdate) {
  Rates rates;
  TrainerInputs inputs = tiny_inputs();
  inputs.hooks = {&rates};
  inputs.state = {.step = 15, .epoch = 3};
  const auto trainer = Trainer::create(std::move(inputs), tiny_options(4));
  ASSERT_TRUE(trainer.ok() && (*trainer)->run().ok());
  EXPECT_NEAR(rates.begins_at, 0.75, 1e-9);
  EXPECT_NEAR(rates.shares.back(), 1, 1e-9);
}

TEST(TimedTrainer, RefusesATimeInWhichNothingCanBeDone) {
  TrainerInputs inputs = tiny_inputs();
  TickingClock clock;
  clock.give(inputs);
  inputs.began -= 5;
  TrainerOptions options = tiny_options();
  options.time.seconds = 2;
  const auto trainer = Trainer::create(std::move(inputs), options);
  ASSERT_TRUE(trainer.ok());
  expect_failure((*trainer)->run(), Code::kInvalidArgument, {"time of 2.0 s", "give more time"});
  options.patience = 2;
  expect_failure(Trainer::create(tiny_inputs(), options), Code::kInvalidArgument, {"patience"});
}

}  // namespace
}  // namespace limber::test
