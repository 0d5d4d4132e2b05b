#include "adapt/guard.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace limber::adapt {
namespace {

constexpr size_t kGuardClasses = 10;

// Rows that claim these classes, each with this logit more than all others.
Logits claims(const std::vector<size_t>& classes, float margin) {
  Logits logits;
  for (const size_t c : classes) {
    logits.emplace_back(kGuardClasses, 0.F);
    logits.back()[c] = margin;
  }
  return logits;
}

std::vector<size_t> mixed(size_t count) {
  std::vector<size_t> classes;
  for (size_t i = 0; i < count; ++i) classes.push_back(i % kGuardClasses);
  return classes;
}

Trial trial_of(const Logits& original, const Logits& candidate) {
  const Footing good{1, 0.9};
  return {good, good, compare(original, good, candidate, good), 1, {}};
}

Frame frame_with(float contrast, float edges) {
  Frame frame;
  frame.features[static_cast<size_t>(FrameFeature::kContrast)] = std::log(contrast);
  frame.features[static_cast<size_t>(FrameFeature::kEdgesAcross)] = std::log(edges);
  frame.features[static_cast<size_t>(FrameFeature::kEdgesDown)] = std::log(edges);
  return frame;
}

std::string reason(const Trial& trial) { return Guard({}).judge(trial).reason; }

TEST(FrameFaults, OnlyWhatCannotBeAPictureIsOne) {
  Random random(1);
  std::vector<float> noise(3 * 32 * 32), flat(noise.size(), 0.3F), picture(noise.size());
  for (float& x : noise) x = static_cast<float>(random.uniform());
  for (size_t i = 0; i < picture.size(); ++i) {
    const size_t x = i % 32, y = i / 32 % 32;
    picture[i] = std::sin(static_cast<float>(x) / 6) + std::cos(static_cast<float>(y) / 9);
  }
  const std::vector<float> logits(kGuardClasses, 0.F);
  const auto fault = [&](const std::vector<float>& image) {
    return fault_of(image, frame_of(image, 3, 32, 32, logits));
  };
  EXPECT_EQ(fault(picture), FrameFault::kNone);
  EXPECT_EQ(fault(flat), FrameFault::kFlat);
  EXPECT_EQ(fault(std::vector<float>(noise.size(), -2.F)), FrameFault::kFlat) << "black";
  EXPECT_EQ(fault(noise), FrameFault::kNoise);
  // A picture under as much noise as it has contrast is hard, but a picture.
  std::vector<float> noisy = picture;
  for (size_t i = 0; i < noisy.size(); ++i) noisy[i] += 2 * noise[i];
  EXPECT_EQ(fault(noisy), FrameFault::kNone);
  picture[77] = NAN;
  EXPECT_EQ(fault(picture), FrameFault::kNotANumber);
  FrameFaults faults;
  for (const FrameFault one : {FrameFault::kNone, FrameFault::kFlat, FrameFault::kNoise, FrameFault::kNoise})
    faults.count(one);
  EXPECT_EQ(faults.all(), 3);
  EXPECT_EQ(faults.noise, 2);
}

TEST(FrameFaults, EdgesInOneDirectionAreNoNoise) {
  Frame stripes = frame_with(1, 1.1F);
  EXPECT_EQ(fault_of({}, stripes), FrameFault::kNoise);
  stripes.features[static_cast<size_t>(FrameFeature::kEdgesDown)] = std::log(0.01F);
  EXPECT_EQ(fault_of({}, stripes), FrameFault::kNone);
}

TEST(Footing, TemperatureUndoesWhatMakesSurer) {
  Random random(2);
  Logits logits;
  std::vector<int64_t> labels;
  for (int i = 0; i < 500; ++i) {
    std::vector<float>& row = logits.emplace_back();
    for (size_t c = 0; c < kGuardClasses; ++c) row.push_back(static_cast<float>(random.normal()));
    labels.push_back(static_cast<int64_t>(random.below(kGuardClasses)));
    row[static_cast<size_t>(labels.back())] += 2;
  }
  Logits inflated = logits;
  for (auto& row : inflated) {
    for (float& x : row) x *= 3;
  }
  const Footing plain = footing_of(logits, labels), surer = footing_of(inflated, labels);
  EXPECT_EQ(plain.accuracy, surer.accuracy);
  EXPECT_NEAR(surer.temperature, 3 * plain.temperature, 0.02 * surer.temperature);
  EXPECT_NEAR(compare(logits, plain, inflated, surer).gain(), 0, 1e-3);
}

TEST(Guard, SurerIsBetterAndLessSureIsNot) {
  const Logits doubtful = claims(mixed(100), 2), sure = claims(mixed(100), 4);
  const Verdict better = Guard({}).judge(trial_of(doubtful, sure)),
                worse = Guard({}).judge(trial_of(sure, doubtful));
  EXPECT_TRUE(better.good);
  EXPECT_GT(better.gain, 0.2);
  EXPECT_NE(better.reason.find("points on 100 images"), std::string::npos) << better.reason;
  EXPECT_FALSE(worse.good);
  EXPECT_FALSE(Guard({}).watch(trial_of(sure, doubtful)).good);
  // The same is not enough to begin with, and enough to go on.
  EXPECT_FALSE(Guard({}).judge(trial_of(sure, sure)).good);
  EXPECT_TRUE(Guard({}).watch(trial_of(sure, sure)).good);
}

TEST(Guard, WhatTheModelAsItCameCannotKnowCountsInPart) {
  const Logits same = claims(mixed(100), 3);
  Trial trial = trial_of(same, same);
  trial.original_accuracy = trial.seen.original - 0.2;
  EXPECT_NEAR(Guard({}).judge(trial).gain, 0.25 * 0.2, 1e-9);
  EXPECT_TRUE(Guard({}).judge(trial).good);
  trial.original_accuracy = 1;
  EXPECT_EQ(Guard({}).judge(trial).gain, 0) << "modesty is no fault";
}

TEST(Guard, KnowsCollapse) {
  const Logits original = claims(mixed(100), 2);
  const Trial one_class = trial_of(original, claims(std::vector<size_t>(100, 3), 9));
  EXPECT_FALSE(Guard({}).judge(one_class).good);
  EXPECT_NE(reason(one_class).find("predicts 1.0 classes"), std::string::npos) << reason(one_class);
  // A world of one class is no collapse.
  const std::vector<size_t> only(100, 3);
  EXPECT_TRUE(Guard({}).judge(trial_of(claims(only, 2), claims(only, 4))).good);
}

TEST(Guard, RefusesWhatForgotTheSourceOrContradictsWhatIsSure) {
  Trial forgetful = trial_of(claims(mixed(100), 2), claims(mixed(100), 4));
  forgetful.candidate.accuracy = 0.8;
  EXPECT_FALSE(Guard({}).judge(forgetful).good);
  EXPECT_NE(reason(forgetful).find("80.0 % of the kept source images"), std::string::npos)
      << reason(forgetful);
  std::vector<size_t> others = mixed(100);
  for (size_t i = 0; i < 60; ++i) others[i] = (others[i] + 1) % kGuardClasses;
  const Trial contrary = trial_of(claims(mixed(100), 5), claims(others, 9));
  EXPECT_FALSE(Guard({}).judge(contrary).good);
  EXPECT_NE(reason(contrary).find("contradicts 60 %"), std::string::npos) << reason(contrary);
}

TEST(Guard, WhatIsKnownByHeartIsJudgedByOtherImages) {
  const Footing good{1, 0.9};
  Trial trial = trial_of(claims(mixed(100), 2), claims(mixed(100), 6));
  trial.unlearnt = compare(claims(mixed(20), 3), good, claims(mixed(20), 3), good);
  const Verdict verdict = Guard({}).judge(trial);
  EXPECT_FALSE(verdict.good);
  EXPECT_NE(verdict.reason.find("20 images that it did not learn from"), std::string::npos) << verdict.reason;
  trial.unlearnt = compare(claims(mixed(20), 2), good, claims(mixed(20), 6), good);
  EXPECT_TRUE(Guard({}).judge(trial).good);
}

TEST(Guard, RefusesAnswersThatAreNoNumbers) {
  Logits broken = claims(mixed(100), 9);
  broken[3][2] = NAN;
  broken[7][0] = INFINITY;
  const Trial trial = trial_of(claims(mixed(100), 2), broken);
  EXPECT_FALSE(Guard({}).judge(trial).good);
  EXPECT_FALSE(Guard({}).watch(trial).good);
  EXPECT_EQ(reason(trial), "what it says of 2 of 100 images is no number");
}

TEST(Guard, SharesAreChecked) {
  EXPECT_TRUE(check(GuardOptions{}).ok());
  const Status wrong = check(GuardOptions{.least_gain = 2});
  EXPECT_EQ(wrong.code(), Code::kInvalidArgument);
  EXPECT_NE(wrong.message().find("least_gain is 2"), std::string::npos);
}

}  // namespace
}  // namespace limber::adapt
