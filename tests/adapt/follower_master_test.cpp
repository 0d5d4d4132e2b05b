// Following by networks that are cut from a master, which learns from them.
#include "tests/adapt/follower_case.h"

namespace limber::adapt {
namespace {

// Answers by a network of its own, and writes into the master what it is told to when that is kept.
class Carver : public Strategy {
 public:
  Carver(const AdaptedModel& master, Scripted::Change learn, Scripted::Change keep)
      : master_(master), own_(master), learn_(std::move(learn)), keep_(std::move(keep)) {
    own_.weights = std::make_shared<Parameters>(*master.weights->snapshot());
  }
  std::string_view name() const override { return "carver"; }
  int64_t batch() const override { return 16; }
  const AdaptedModel* remodelled() const override { return &own_; }
  Result<bool> adapt(const Tensor&) override {
    LIMBER_TRY(learn_(*own_.weights));
    return true;
  }
  Status keep() override { return keep_(*master_.weights); }
  Status forget(int64_t domain) override {
    forgotten.push_back(domain);
    return {};
  }
  Status reset() override {
    own_.weights = std::make_shared<Parameters>(*master_.weights->snapshot());
    return {};
  }

  std::vector<int64_t> forgotten;

 private:
  AdaptedModel master_, own_;
  Scripted::Change learn_, keep_;
};

struct Workshop {
  Workshop(Scripted::Change learn, Scripted::Change keep, const FollowerOptions& options = trusting())
      : world(kNothing, options) {
    auto made = std::make_unique<Carver>(world.model, std::move(learn), std::move(keep));
    carver = made.get();
    world.follower = *Follower::create(world.model, std::move(made), studied(world.model), options);
  }
  float head() const { return (*world.model.weights->get("head")).data<float>()[0]; }

  Case world;
  Carver* carver;
};

TEST(FollowerOfMaster, AMasterThatForgetsTheSourceIsAsItCameAgain) {
  Workshop fine([](Parameters&) { return Status(); }, times("head", 1.0001F));
  const float as_it_came = fine.head();
  fine.world.show(60, 2, 4);
  ASSERT_GT(fine.world.count(FollowKind::kAdapted), 0);
  EXPECT_EQ(fine.world.count(FollowKind::kReset), 0);
  EXPECT_NE(fine.head(), as_it_came);

  Workshop ruined([](Parameters&) { return Status(); }, times("head", -1));
  ruined.world.show(60, 2, 4);
  ASSERT_GT(ruined.world.count(FollowKind::kAdapted), 0);
  EXPECT_EQ(ruined.world.count(FollowKind::kReset), ruined.world.count(FollowKind::kAdapted));
  EXPECT_EQ(ruined.head(), as_it_came);
  EXPECT_FALSE(ruined.world.follower->net()->original) << "what was accepted answers on";
}

// The same function, but by numbers so large that a very bright image is too much for them.
Status enlarge(Parameters& weights) {
  constexpr float kLarge = 1e15F;
  LIMBER_ASSIGN(const Tensor head, weights.get("head"));
  if (std::abs(head.data<float>()[0]) < 1 / std::sqrt(kLarge)) return {};  // it was
  LIMBER_TRY(times("s2", kLarge)(weights));
  LIMBER_TRY(times("b2", kLarge)(weights));
  return times("head", 1 / kLarge)(weights);
}

TEST(FollowerOfMaster, WhatIsRolledBackIsTakenOutOfTheMaster) {
  Workshop shop(enlarge, times("head", 1.0001F));
  const float as_it_came = shop.head();
  shop.world.show(100, 2, 4);
  ASSERT_GT(shop.world.count(FollowKind::kAdapted), 0);
  EXPECT_EQ(shop.world.count(FollowKind::kRolledBack), 0);
  EXPECT_NE(shop.head(), as_it_came);
  ASSERT_TRUE(shop.world.follower->see(pictures(40, 4, 4)).ok());  // enough to judge it by
  EXPECT_EQ(shop.world.count(FollowKind::kRolledBack), 0);
  Tensor bright = pictures(1, 3, 4);
  for (float& x : bright.data<float>()) x *= 1e24F;
  ASSERT_TRUE(shop.world.follower->see(bright).ok());
  EXPECT_EQ(shop.world.count(FollowKind::kRolledBack), 1);
  EXPECT_TRUE(shop.world.follower->net()->original);
  EXPECT_EQ(shop.carver->forgotten, std::vector<int64_t>{1});
  EXPECT_EQ(shop.head(), as_it_came);
}

}  // namespace
}  // namespace limber::adapt
