#include "data/judge_input.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/data/files.h"

namespace limber {
namespace {

// Grey images from black, or another level, to white.
class Greys : public Dataset {
 public:
  explicit Greys(size_t count, size_t darkest = 0) : Dataset({"grey"}), count_(count), darkest_(darkest) {}
  size_t size() const override { return count_; }
  int64_t label(size_t) const override { return 0; }
  std::string name(size_t index) const override { return fmt::format("grey[{}]", index); }
  Result<Sample> get(size_t index) const override {
    LIMBER_ASSIGN(Tensor image, Tensor::allocate({DType::kU8, Shape{4, 4, 3}}));
    const auto level =
        static_cast<uint8_t>(darkest_ + (255 - darkest_) * index / std::max<size_t>(count_ - 1, 1));
    std::fill(image.data<uint8_t>().begin(), image.data<uint8_t>().end(), level);
    return Sample{std::move(image), 0};
  }

 private:
  size_t count_, darkest_;
};

// Tells ten levels between `low` and `high` of the first channel apart; beyond it is sure of the outermost.
AnswerImages levels(float low, float high, bool softmax = false) {
  return [=](const Tensor& images) -> Result<Tensor> {
    const int64_t count = images.shape().dim(0), each = images.elements() / count;
    LIMBER_ASSIGN(Tensor rows, Tensor::allocate({DType::kF32, Shape{count, 10}}));
    for (int64_t i = 0; i < count; ++i) {
      const float x = (images.data<float>()[static_cast<size_t>(i * each)] - low) / (high - low) * 9;
      float sum = 0;
      const auto row = rows.data<float>().subspan(static_cast<size_t>(i * 10), 10);
      for (size_t c = 0; c < 10; ++c) {
        const float distance = std::clamp(x, -5.F, 14.F) - static_cast<float>(c);
        row[c] = -3 * distance * distance;
        sum += std::exp(row[c]);
      }
      for (float& value : row) value = softmax ? std::exp(value) / sum : value;
    }
    return rows;
  };
}

Preprocess as(const char* preset) {
  Preprocess how;
  how.height = how.width = 4;
  how.normalisation = find_preset(preset)->normalisation;
  return how;
}

struct Trained {
  const char* preset;
  float low, high;
};
constexpr Trained kTrained[] = {
    {"none", 0, 1}, {"imagenet", -2.1F, 2.2F}, {"minus1to1", -1, 1}, {"0to255", 0, 255}};

TEST(JudgeInput, WhatItWasTrainedWithIsNotDoubted) {
  for (const Trained& t : kTrained) {
    const auto verdict = judge_input(Greys(64), as(t.preset), levels(t.low, t.high));
    ASSERT_TRUE(verdict.ok()) << verdict.status().message();
    EXPECT_FALSE(verdict->doubtful) << t.preset << ": " << verdict->advice;
    EXPECT_EQ(verdict->best.information, verdict->given.information);
    EXPECT_TRUE(verdict->advice.empty());
    EXPECT_GT(verdict->given.information, 1.5) << t.preset;
  }
}

TEST(JudgeInput, UnnormalisedPixelsAreNoticed) {
  for (const bool softmax : {false, true}) {
    const auto verdict = judge_input(Greys(64), as("none"), levels(-2.1F, 2.2F, softmax));
    ASSERT_TRUE(verdict.ok()) << verdict.status().message();
    EXPECT_TRUE(verdict->doubtful);
    EXPECT_EQ(verdict->best.preset, "imagenet");
    EXPECT_NE(verdict->advice.find("'imagenet'"), std::string::npos) << verdict->advice;
    EXPECT_NE(verdict->advice.find("none"), std::string::npos) << verdict->advice;
  }
}

// Sure of one answer for all images: the most confident, and the worst.
TEST(JudgeInput, ConfidenceAloneDoesNotCount) {
  const auto verdict = judge_input(Greys(64), as("0to255"), levels(-2.1F, 2.2F));
  ASSERT_TRUE(verdict.ok()) << verdict.status().message();
  EXPECT_GT(verdict->given.confidence, verdict->best.confidence);
  EXPECT_TRUE(verdict->doubtful);
  EXPECT_EQ(verdict->best.preset, "imagenet");
}

TEST(JudgeInput, AnUntrainedNetworkIsNotBlamedOnItsInput) {
  const AnswerImages flat = [](const Tensor& images) {
    return Tensor::zeros({DType::kF32, Shape{images.shape().dim(0), 10}});
  };
  const auto verdict = judge_input(Greys(64), as("none"), flat);
  ASSERT_TRUE(verdict.ok()) << verdict.status().message();
  EXPECT_FALSE(verdict->doubtful);
  EXPECT_NEAR(verdict->given.information, 0, 1e-9);
  EXPECT_NEAR(verdict->given.confidence, 0.1, 1e-6);
}

// A network of random weights: it leans towards some class, as weakly as pixels are small. 255 times as large
// ones make it certain of every image.
TEST(JudgeInput, CertaintyThatComesFromLargePixelsProvesNothing) {
  const AnswerImages random = [](const Tensor& images) -> Result<Tensor> {
    const int64_t count = images.shape().dim(0), each = images.elements() / count;
    LIMBER_ASSIGN(Tensor rows, Tensor::zeros({DType::kF32, Shape{count, 10}}));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t leaning = i * 7 % 10;
      rows.data<float>()[static_cast<size_t>(i * 10 + leaning)] =
          0.3F * images.data<float>()[static_cast<size_t>(i * each)];
    }
    return rows;
  };
  const auto verdict = judge_input(Greys(64, /*darkest=*/100), as("none"), random);
  ASSERT_TRUE(verdict.ok()) << verdict.status().message();
  EXPECT_LT(verdict->given.information, 0.1);
  EXPECT_FALSE(verdict->doubtful) << verdict->advice;
  // One that was trained with such pixels is not certain of all of them.
  const auto trained = judge_input(Greys(64), as("none"), levels(0, 255));
  ASSERT_TRUE(trained.ok()) << trained.status().message();
  EXPECT_TRUE(trained->doubtful);
  EXPECT_EQ(trained->best.preset, "0to255");
}

TEST(JudgeInput, AHandfulOfImagesProvesNothing) {
  const auto verdict = judge_input(Greys(8), as("none"), levels(-2.1F, 2.2F));
  ASSERT_TRUE(verdict.ok()) << verdict.status().message();
  EXPECT_FALSE(verdict->doubtful);
}

TEST(JudgeInput, BatchesAreAlwaysWhole) {
  int64_t calls = 0;
  const AnswerImages count = [&](const Tensor& images) {
    EXPECT_EQ(images.type().to_string(), "f32[16,3,4,4]");
    ++calls;
    return Tensor::zeros({DType::kF32, Shape{16, 10}});
  };
  ASSERT_TRUE(judge_input(Greys(3), as("none"), count).ok());
  EXPECT_EQ(calls, 4);  // one of each preprocessing
  ASSERT_TRUE(judge_input(Greys(1000), as("none"), count).ok());
  EXPECT_EQ(calls, 4 + 8);
}

TEST(JudgeInput, FailuresAreHandedOn) {
  const AnswerImages nan = [](const Tensor& images) -> Result<Tensor> {
    LIMBER_ASSIGN(Tensor rows, Tensor::zeros({DType::kF32, Shape{images.shape().dim(0), 10}}));
    rows.data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
    return rows;
  };
  expect_failure(judge_input(Greys(64), as("none"), nan), Code::kInvalidArgument, {"not finite"});
  const AnswerImages other = [](const Tensor&) { return Tensor::zeros({DType::kF32, Shape{3, 10}}); };
  expect_failure(judge_input(Greys(64), as("none"), other), Code::kInvalidArgument, {"f32[3,10]"});
  const AnswerImages fails = [](const Tensor&) -> Result<Tensor> { return corrupt("no backend"); };
  expect_failure(judge_input(Greys(64), as("none"), fails), Code::kCorrupt, {"no backend"});
}

}  // namespace
}  // namespace limber
