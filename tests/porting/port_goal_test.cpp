#include "porting/port_goal.h"

#include <gtest/gtest.h>

#include <cmath>

namespace limber {
namespace {

// Everything about it shrinks by the same share at each step, down to a tenth.
class Halving : public Executor {
 public:
  Halving() { root_.cost = {1e9, 1e9, 1000, 100}; }

  const Ported& root() const override { return root_; }
  Result<PortCost> least(const DeviceProfile&) override { return scaled(0.1); }
  Status init(const Goal&, const Ported& parent) override {
    size_ = parent.cost.parameters / 100;
    return {};
  }
  Result<PortCost> measure() override { return scaled(size_); }
  Status adjust(const Figures& limits, const Figures& weights) override {
    seen.push_back(weights);
    last_limits = limits;
    if (size_ <= floor) return invalid("nothing is left");
    size_ = std::max(floor, 0.8 * size_);
    return {};
  }
  Result<Model> model() override { return Model(); }
  Result<Ported> finish() override {
    ++finished;
    return Ported{.cost = scaled(size_), .accuracy = size_};
  }

  double size() const { return size_; }
  std::vector<Figures> seen;
  Figures last_limits = {};
  double floor = 0.1;
  int finished = 0;

 private:
  static PortCost scaled(double size) { return {size * 1e9, size * 1e9, size * 1000, size * 100}; }
  Ported root_;
  double size_ = 1;
};

Goal goal(GoalTargets targets, bool here = false) {
  return {.name = "a",
          .path = "goals[0]",
          .device = {.operations_per_s = 2e9, .bytes_per_s = 2e9, .here = here},
          .targets = targets};
}

TEST(PortGoal, StepsUntilEveryLimitIsKept) {
  Halving executor;
  const auto done = port_goal(executor, goal({.latency = 0.5, .parameters = 60}), executor.root(), {});
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_EQ(done->refused, "");
  EXPECT_EQ(done->steps, 4) << "0.8, 0.64, 0.512, 0.41";
  EXPECT_NEAR(done->way, std::log(2), 1e-9) << "of the latency, which is the worst";
  EXPECT_LE(done->ported.cost.parameters, 60);
  EXPECT_EQ(executor.seen.front(), (Figures{1, 0, 1}));
  EXPECT_EQ(executor.seen.back()[2], 0) << "fewer parameters are kept already";
  EXPECT_GT(executor.seen.back()[0], 0);
}

TEST(PortGoal, BeginsAtTheParentAndDoesNothingWhereItSuffices) {
  Halving executor;
  Ported parent;
  parent.cost = {0.3e9, 0.3e9, 300, 30};
  const auto done = port_goal(executor, goal({.parameters = 40}), parent, {});
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_EQ(done->steps, 0);
  EXPECT_EQ(done->way, 0);
  EXPECT_EQ(done->ported.cost.parameters, 30);
}

TEST(PortGoal, RefusesWithTheNearest) {
  Halving executor;
  const auto never = port_goal(executor, goal({.parameters = 7}), executor.root(), {});
  ASSERT_TRUE(never.ok());
  EXPECT_EQ(never->refused, "goals[0].targets.parameters: 7 is out of reach; the least is 10");
  EXPECT_TRUE(executor.seen.empty()) << "before anything is done";
  executor.floor = 0.5;
  const auto stuck = port_goal(executor, goal({.parameters = 20}), executor.root(), {});
  ASSERT_TRUE(stuck.ok());
  EXPECT_EQ(
      stuck->refused,
      "goals[0].targets.parameters: 20 is out of reach; the least is 50 with the other targets (nothing is "
      "left)");
  const auto slow = port_goal(executor, goal({.parameters = 40}), executor.root(), {.max_steps = 1});
  ASSERT_TRUE(slow.ok());
  EXPECT_NE(slow->refused.find("the least is 80"), std::string::npos) << slow->refused;
  EXPECT_EQ(executor.finished, 0);
}

TEST(PortGoal, TimesAreCheckedOnThisMachine) {
  Halving executor;
  // A third slower than predicted.
  PortGoalOptions how;
  how.time_here = [&](const Model&) -> Result<double> { return 4.0 / 3 * executor.size(); };
  const auto done = port_goal(executor, goal({.latency = 0.5}, true), executor.root(), how);
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_EQ(done->refused, "");
  EXPECT_LE(done->measured_s, 0.5);
  EXPECT_LT(executor.last_limits[0], 0.5) << "tighter than asked, by what was measured";
  how.time_here = [](const Model&) -> Result<double> { return 9.0; };
  const auto never = port_goal(executor, goal({.latency = 0.5}, true), executor.root(), how);
  ASSERT_TRUE(never.ok());
  EXPECT_NE(never->refused.find("latency: 500.00 ms is out of reach"), std::string::npos) << never->refused;
}

}  // namespace
}  // namespace limber
