#include "sched/turns.h"

#include <gtest/gtest.h>

namespace limber::sched {
namespace {

constexpr TurnOptions kHalfOfTwo{.window_s = 30, .cores = 2, .share = 1};

Learner drifted(const std::string& name, double estimate, double learning_s) {
  return {.name = name,
          .adapts = true,
          .due = true,
          .domain = 1,
          .estimate = estimate,
          .source_accuracy = 0.9,
          .learning_s = learning_s};
}

bool says(const Turn& turn, const std::string& part) { return turn.why.find(part) != std::string::npos; }

TEST(TurnPlanner, TheOneThatGainsMostByItsTimeLearnsFirst) {
  TurnPlanner planner(kHalfOfTwo);
  const std::vector<Learner> learners = {drifted("a", 0.8, 10), drifted("b", 0.4, 10)};
  const auto turns = planner.plan(learners);
  EXPECT_FALSE(turns[0].learns);
  EXPECT_TRUE(turns[1].learns) << turns[1].why;
  EXPECT_TRUE(says(turns[1], "40.0 % to 65.0 % expected after 10.00 s")) << turns[1].why;
  EXPECT_EQ(turns[0].start_s, 10) << "then the other";
  EXPECT_TRUE(says(turns[0], "after 'b'")) << turns[0].why;
}

TEST(TurnPlanner, ImportanceAndAMinimumCount) {
  TurnPlanner planner(kHalfOfTwo);
  std::vector<Learner> learners = {drifted("a", 0.5, 10), drifted("b", 0.4, 10)};
  learners[0].importance = 3;
  EXPECT_TRUE(planner.plan(learners)[0].learns);
  learners[0].importance = 1;
  learners[0].minimum_accuracy = 0.7;
  EXPECT_TRUE(planner.plan(learners)[0].learns);
}

TEST(TurnPlanner, NobodyLearnsWhoHasNothingToLearn) {
  TurnPlanner planner(kHalfOfTwo);
  std::vector<Learner> learners = {drifted("a", 0.5, 10), drifted("b", 0.5, 10), drifted("c", 0.5, 10)};
  learners[0].adapts = false;
  learners[1].due = false;
  learners[2].due = false;
  learners[2].domain = 0;
  learners.push_back({.name = "d", .adapts = true});
  const auto turns = planner.plan(learners);
  for (const Turn& turn : turns) EXPECT_FALSE(turn.learns);
  EXPECT_EQ(turns[3].why, "looks at the images of the source first");
  EXPECT_EQ(turns[3].expected.before, 0) << "nobody knows";
  EXPECT_EQ(turns[0].why, "does not adapt");
  EXPECT_EQ(turns[1].why, "has seen too little to learn from");
  EXPECT_EQ(turns[2].why, "nothing new: as where it was trained");
  EXPECT_TRUE(planner.plan({}).empty());
}

TEST(TurnPlanner, AnsweringComesFirst) {
  TurnPlanner planner(kHalfOfTwo);
  std::vector<Learner> learners = {drifted("a", 0.5, 10), drifted("b", 0.5, 20)};
  learners[1].busy_cores = 1.5;
  EXPECT_DOUBLE_EQ(planner.plan(learners)[0].end_s, 20) << "half a core is left of the one it might have";
  learners[1].busy_cores = 2.5;
  for (const Turn& turn : planner.plan(learners)) {
    EXPECT_FALSE(turn.learns);
    EXPECT_EQ(turn.why, "answering takes 2.5 of 2 cores");
  }
}

TEST(TurnPlanner, WhatTakesLongerThanTheWindowIsBegunAllTheSame) {
  TurnPlanner planner(kHalfOfTwo);
  const std::vector<Learner> learners = {drifted("a", 0.5, 500)};
  EXPECT_TRUE(planner.plan(learners)[0].learns);
}

TEST(TurnPlanner, WhoHasBegunHasTheLessToDo) {
  TurnPlanner planner(kHalfOfTwo);
  std::vector<Learner> learners = {drifted("a", 0.5, 20), drifted("b", 0.4, 20)};
  ASSERT_TRUE(planner.plan(learners)[1].learns);
  learners[0].learning = true;
  learners[0].due = false;
  learners[0].learnt_s = 15;
  const auto turns = planner.plan(learners);
  EXPECT_TRUE(turns[0].learns);
  EXPECT_DOUBLE_EQ(turns[0].end_s, 5);
}

TEST(TurnPlanner, WhatLearningBroughtIsExpectedOfItFromThenOn) {
  TurnPlanner planner(kHalfOfTwo);
  std::vector<Learner> learners = {drifted("a", 0.5, 10), drifted("b", 0.45, 10)};
  ASSERT_TRUE(planner.plan(learners)[1].learns);
  for (int i = 0; i < 3; ++i) planner.learnt("b", 1, 0.46);
  const auto turns = planner.plan(learners);
  EXPECT_TRUE(turns[0].learns) << turns[0].why;
  EXPECT_LT(turns[1].expected.after, 0.55);
  learners[1].domain = 2;
  EXPECT_GT(planner.plan(learners)[1].expected.after, turns[1].expected.after) << "elsewhere it says less";
  planner.forget("b");
  learners[1].domain = 1;
  EXPECT_DOUBLE_EQ(planner.plan(learners)[1].expected.after, 0.675);
}

TEST(TurnPlanner, TimeThatNobodyElseWantsIsGivenToWhoMayBeExpectedWrongly) {
  TurnPlanner planner(kHalfOfTwo);
  std::vector<Learner> learners = {drifted("a", 0.95, 10)};
  const auto turns = planner.plan(learners);
  EXPECT_TRUE(turns[0].learns);
  EXPECT_EQ(turns[0].why, "learns: nobody else wants the time");
  learners.push_back(drifted("b", 0.5, 10));
  EXPECT_FALSE(planner.plan(learners)[0].learns);
  EXPECT_TRUE(planner.plan(learners)[1].learns);
}

TEST(TurnPlanner, WhatNobodyKnowsYetIsNoObstacle) {
  TurnPlanner planner(kHalfOfTwo);
  std::vector<Learner> learners = {drifted("a", 0.5, 0)};
  learners[0].estimate.reset();
  learners[0].source_accuracy.reset();
  EXPECT_TRUE(planner.plan(learners)[0].learns);
}

TEST(TurnPlanner, AtMostOneLearnsOfMany) {
  TurnPlanner planner(kHalfOfTwo);
  std::vector<Learner> learners;
  for (int i = 0; i < 12; ++i) learners.push_back(drifted(std::to_string(i), 0.3 + 0.04 * i, 5 + i % 3));
  int learn = 0;
  for (const Turn& turn : planner.plan(learners)) learn += turn.learns ? 1 : 0;
  EXPECT_EQ(learn, 1);
}

}  // namespace
}  // namespace limber::sched
