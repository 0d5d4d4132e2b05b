#include "adapt/follower.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/adapt/follower_case.h"

namespace limber::adapt {
namespace {

TEST(Follower, LearnsNothingAtHomeAndAsItCameAnswers) {
  Case home(times("head", 0));
  home.show(200, 2, 0);
  EXPECT_TRUE(home.strategy->seen.empty());
  EXPECT_TRUE(home.follower->net()->original);
  EXPECT_EQ(home.follower->domain(), 0);
  EXPECT_EQ(home.follower->counts().frames, 200);
}

TEST(Follower, WhatForgetsIsRejectedAndTakenBack) {
  Case strange(times("head", 0));
  const Tensor before = *(*strange.model.weights->get("head")).copy();
  strange.show(100, 2, 4);
  EXPECT_GT(strange.count(FollowKind::kRejected), 0);
  EXPECT_EQ(strange.count(FollowKind::kAdapted), 0);
  EXPECT_TRUE(strange.follower->net()->original);
  const Tensor after = *strange.model.weights->get("head");
  EXPECT_EQ(std::memcmp(before.raw(), after.raw(), before.bytes()), 0);
  EXPECT_GT(strange.strategy->resets, 0);
  for (const FollowEvent& event : strange.events)
    EXPECT_FALSE(event.reason.empty()) << follow_name(event.kind);
}

TEST(Follower, AnswersThatAreNoNumbersAreRejected) {
  Case broken(times("head", NAN));
  broken.show(100, 2, 4);
  EXPECT_EQ(broken.count(FollowKind::kAdapted), 0);
  ASSERT_GT(broken.count(FollowKind::kRejected), 1);
  EXPECT_NE(broken.events.back().reason.find("is no number"), std::string::npos)
      << broken.events.back().reason;
}

TEST(Follower, BeingSurerAloneGainsNothing) {
  Case inflated(times("head", 4));
  inflated.show(100, 2, 4);
  EXPECT_GT(inflated.count(FollowKind::kRejected), 0);
  EXPECT_EQ(inflated.count(FollowKind::kAdapted), 0);
}

TEST(Follower, WithoutAGuardEverythingAnswers) {
  FollowerOptions options = kQuick;
  options.guarded = false;
  Case free(times("head", 0), options);
  free.show(40, 2, 0);
  EXPECT_EQ(free.count(FollowKind::kAdapted), 2);
  EXPECT_FALSE(free.follower->net()->original);
  EXPECT_EQ(free.strategy->seen.size(), 40U * 3 * kSide * kSide) << "nothing is kept";
}

TEST(Follower, AnswersInItsDomainAndLeavesItWithIt) {
  Case world(kNothing, trusting());
  world.show(100, 2, 4);
  ASSERT_GT(world.count(FollowKind::kAdapted), 0);
  EXPECT_EQ(world.follower->domain(), 1);
  EXPECT_FALSE(world.follower->net()->original);
  EXPECT_EQ(world.follower->net()->domain, 1);
  world.show(60, 3, 0);
  EXPECT_TRUE(world.follower->net()->original) << "the source needs nothing";
  EXPECT_EQ(world.follower->domain(), 0);
  EXPECT_EQ(world.strategy->entered, (std::vector<int64_t>{1, 0}));
  world.show(40, 4, 4);
  EXPECT_EQ(world.follower->domain(), 1) << "known";
  EXPECT_FALSE(world.follower->net()->original);
}

TEST(Follower, OneInFiveIsNeverLearntFrom) {
  Case world(kNothing);
  world.show(200, 2, 4);
  const size_t row = 3 * kSide * kSide, learnt = world.strategy->seen.size() / row;
  EXPECT_GT(learnt, 100U);
  const Tensor images = pictures(200, 2, 4);
  int64_t kept = 0;
  for (int64_t i = 40; i < 160; ++i) {
    const auto image = images.data<float>().subspan(static_cast<size_t>(i) * row, row);
    bool found = false;
    for (size_t k = 0; k < learnt; ++k)
      found = found || std::memcmp(image.data(), &world.strategy->seen[k * row], image.size_bytes()) == 0;
    kept += found ? 0 : 1;
  }
  EXPECT_EQ(kept, 24);
}

TEST(Follower, BadFramesAreCountedAndNotLearntFrom) {
  Case world(kNothing);
  world.show(50, 2, 4);
  const size_t before = world.strategy->seen.size();
  Tensor bad = pictures(30, 5, 4);
  const size_t row = 3 * kSide * kSide;
  auto pixels = bad.data<float>();
  Random random(1);
  for (size_t i = 0; i < pixels.size(); ++i) {
    if (i / row % 3 == 0) pixels[i] = -2;
    if (i / row % 3 == 1) pixels[i] = static_cast<float>(4 + random.normal());
    if (i / row % 3 == 2 && i % row == 5) pixels[i] = NAN;
  }
  for (int64_t i = 0; i < 30; ++i) {
    ASSERT_TRUE(world.follower->see(one_of(bad, i)).ok());
    ASSERT_TRUE(world.follower->learn().ok());
  }
  EXPECT_EQ(world.follower->counts().faults.flat, 10);
  EXPECT_EQ(world.follower->counts().faults.noise, 10);
  EXPECT_EQ(world.follower->counts().faults.not_a_number, 10);
  EXPECT_LE(world.strategy->seen.size() - before, 20 * row) << "at most what waited";
  for (const float x : world.strategy->seen) ASSERT_TRUE(std::isfinite(x));
}

TEST(Follower, StandInsAreAnsweredAndNothingIsMadeOfThem) {
  Case world(kNothing);
  const Tensor images = pictures(100, 2, 4);
  const size_t row = 3 * kSide * kSide;
  for (int64_t i = 0; i < 100; i += 10) {
    const auto part = images.data<float>().subspan(static_cast<size_t>(i) * row, 10 * row);
    std::vector<bool> stand_ins(10);
    stand_ins[3] = stand_ins[4] = true;
    const auto look = world.follower->see(Tensor::from(part, {10, 3, kSide, kSide}), stand_ins);
    ASSERT_TRUE(look.ok());
    EXPECT_EQ(look->answers.size(), 10U);
    ASSERT_TRUE(world.follower->learn().ok());
  }
  EXPECT_EQ(world.follower->counts().frames, 100);
  EXPECT_EQ(world.follower->counts().faults.unreadable, 20);
  EXPECT_EQ(world.follower->detector().frames(), 80);
  ASSERT_FALSE(world.strategy->seen.empty());
  for (size_t k = 0; k < world.strategy->seen.size(); k += row) {
    for (const size_t bad : {3U, 4U, 13U, 54U, 93U})
      EXPECT_NE(std::memcmp(&world.strategy->seen[k], &images.data<float>()[bad * row], row * sizeof(float)),
                0);
  }
}

FollowerOptions known_borders() {
  FollowerOptions options = kQuick;
  options.guarded = false;
  options.borders_known = true;
  return options;
}

TEST(Follower, WhereBordersAreKnownEachVisitTeachesOnce) {
  Case world(times("head_bias", 2), known_borders());
  const float as_it_came = (*world.model.weights->get("head_bias")).data<float>()[0];
  const auto bias = [&] { return (*world.model.weights->get("head_bias")).data<float>()[0]; };
  const size_t row = 3 * kSide * kSide;
  for (const int64_t domain : {3, 0, 3}) {
    ASSERT_TRUE(world.follower->begin(domain).ok());
    EXPECT_TRUE(world.follower->net()->original);
    EXPECT_EQ(world.follower->domain(), domain);
    EXPECT_EQ(bias(), as_it_came) << "nothing is remembered";
    world.strategy->seen.clear();
    world.show(60, 5, 4);
    EXPECT_FALSE(world.follower->net()->original);
    EXPECT_EQ(world.follower->net()->domain, domain);
    EXPECT_EQ(bias(), 2 * as_it_came) << "once";
    ASSERT_EQ(world.strategy->seen.size(), 20 * row) << "the first window";
    const Tensor images = pictures(60, 5, 4);
    EXPECT_EQ(std::memcmp(world.strategy->seen.data(), images.raw(), 20 * row * sizeof(float)), 0);
  }
  EXPECT_EQ(world.strategy->entered, (std::vector<int64_t>{3, 0, 3}));
  EXPECT_EQ(world.count(FollowKind::kAdapted), 3);
  EXPECT_EQ(world.count(FollowKind::kAlarm), 0);
  EXPECT_EQ(world.follower->detector().frames(), 0) << "nobody looks for drift";
  EXPECT_EQ(world.follower->counts().by_learnt, 3 * 40);
  EXPECT_EQ(world.follower->counts().operations, 3 * 40);
}

TEST(Follower, AVisitGoesOnAfterABreak) {
  const Tensor images = pictures(40, 5, 4);
  const FrameLoader load = [&](std::span<const int64_t> frames) -> Result<Tensor> {
    std::vector<float> pixels;
    for (const int64_t frame : frames) {
      const Tensor image = one_of(images, frame);
      pixels.insert(pixels.end(), image.data<float>().begin(), image.data<float>().end());
    }
    return Tensor::from(std::span<const float>(pixels),
                        {static_cast<int64_t>(frames.size()), 3, kSide, kSide});
  };
  for (const int64_t at : {10, 30}) {
    Case first(times("head_bias", 2), known_borders()), second(times("head_bias", 2), known_borders());
    const auto show = [&](Follower& follower, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        ASSERT_TRUE(follower.see(one_of(images, i)).ok());
        ASSERT_TRUE(follower.learn().ok());
      }
    };
    ASSERT_TRUE(first.follower->begin(2).ok());
    show(*first.follower, 0, at);
    ASSERT_TRUE(second.follower->restore(*first.follower->state(), load).ok());
    show(*first.follower, at, 40);
    show(*second.follower, at, 40);
    EXPECT_EQ(second.follower->domain(), 2);
    EXPECT_EQ(second.follower->counts().adapted, 1);
    EXPECT_EQ(second.follower->net()->name, first.follower->net()->name);
    const auto a = first.follower->see(images), b = second.follower->see(images);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(a->answers, b->answers) << at;
  }
}

TEST(Follower, AFailureIsAnEventAndTakenBack) {
  Case broken([](Parameters& weights) -> Status {
    LIMBER_TRY(times("head", 0)(weights));
    return error(Code::kInternal, "the loss is no number");
  });
  broken.show(60, 2, 4);
  EXPECT_GT(broken.count(FollowKind::kFailed), 0);
  EXPECT_TRUE(broken.follower->net()->original);
  EXPECT_NE((*broken.model.weights->get("head")).data<float>()[0], 0);
}

TEST(Follower, RefusesOtherImages) {
  Case world(kNothing);
  const auto refused = world.follower->see(*Tensor::zeros({DType::kF32, {2, 3, 4, 4}}));
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(world.follower->counts().frames, 0);
}

// Changes a little by what it sees, and goes on from what it was.
class Wandering : public Strategy {
 public:
  explicit Wandering(AdaptedModel model) : model_(std::move(model)) {}
  std::string_view name() const override { return "wandering"; }
  int64_t batch() const override { return 16; }
  Result<bool> adapt(const Tensor& images) override {
    float sum = 0;
    for (const float x : images.data<float>()) sum += x;
    LIMBER_ASSIGN(Tensor head, model_.weights->writable("head"));
    for (size_t i = 0; i < head.data<float>().size(); ++i)
      head.data<float>()[i] *= 1 + 0.002F * std::sin(sum + static_cast<float>(i));
    model_.weights->mark_changed(std::vector<std::string>{"head"});
    return true;
  }
  Status reset() override { return {}; }

 private:
  AdaptedModel model_;
};

struct Learner {
  Learner() : model(small_model()) {
    follower = *Follower::create(model, std::make_unique<Wandering>(model), studied(model), trusting());
  }
  AdaptedModel model;
  std::unique_ptr<Follower> follower;
};

// The world changes and comes back; frame i depends on i alone.
Tensor frame_at(int64_t i) {
  const float light = i % 150 < 60 ? 0.F : i % 300 < 150 ? 3.F : -2.F;
  return pictures(1, static_cast<uint64_t>(i) + 100, light);
}

std::vector<float> follow(Follower& follower, int64_t begin, int64_t end) {
  std::vector<float> answers;
  for (int64_t i = begin; i < end; ++i) {
    const auto look = follower.see(frame_at(i));
    EXPECT_TRUE(look.ok());
    answers.insert(answers.end(), look->answers[0].begin(), look->answers[0].end());
    EXPECT_TRUE(follower.learn().ok());
  }
  return answers;
}

// At places in the source, while settling, while something that was learnt answers.
TEST(Follower, GoesOnAfterABreakAsIfThereHadBeenNone) {
  Learner alone;
  const std::vector<float> whole = follow(*alone.follower, 0, 420);
  EXPECT_GT(alone.follower->counts().adapted, 2);
  const size_t classes = whole.size() / 420;
  for (const int64_t at : {30, 70, 110, 155, 290, 400}) {
    Learner first, second;
    follow(*first.follower, 0, at);
    const auto state = first.follower->state();
    ASSERT_TRUE(state.ok()) << state.status().message();
    const Status restored =
        second.follower->restore(*state, [](std::span<const int64_t> frames) -> Result<Tensor> {
          std::vector<float> pixels;
          for (const int64_t frame : frames) {
            const Tensor image = frame_at(frame);
            pixels.insert(pixels.end(), image.data<float>().begin(), image.data<float>().end());
          }
          return Tensor::from(std::span<const float>(pixels),
                              {static_cast<int64_t>(frames.size()), 3, kSide, kSide});
        });
    ASSERT_TRUE(restored.ok()) << restored.message();
    const std::vector<float> rest = follow(*second.follower, at, 420);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + at * static_cast<int64_t>(classes)))
        << at;
    EXPECT_EQ(second.follower->counts().adapted, alone.follower->counts().adapted);
    EXPECT_EQ(second.follower->domain(), alone.follower->domain());
  }
}

TEST(Follower, ADamagedStateIsRefused) {
  Learner learner;
  follow(*learner.follower, 0, 120);
  const FollowerState good = *learner.follower->state();
  const auto load = [](std::span<const int64_t>) -> Result<Tensor> {
    return error(Code::kInternal, "not asked");
  };
  const auto refused = [&](FollowerState state) {
    Learner other;
    EXPECT_EQ(other.follower->restore(state, load).code(), Code::kCorrupt);
  };
  FollowerState state = good;
  state.text = "{}";
  refused(state);
  state = good;
  state.tensors.erase("detector");
  refused(state);
  state = good;
  state.tensors["detector"] = Tensor::from<double>({1, 2, 3}, {3});
  refused(state);
  state = good;
  state.tensors["learning/head"] = Tensor::from<float>({1, 2, 3}, {3});
  refused(state);
}

}  // namespace
}  // namespace limber::adapt
