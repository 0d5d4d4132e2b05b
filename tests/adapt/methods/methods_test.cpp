// What every method promises as a strategy.
#include <functional>

#include "adapt/methods/alignment.h"
#include "adapt/methods/pseudo_labels.h"
#include "adapt/methods/shot.h"
#include "adapt/methods/tent.h"
#include "tests/adapt/methods/small_model.h"

namespace limber::adapt {
namespace {

using Made = Result<std::unique_ptr<Strategy>>;

struct MethodCase {
  std::string name;
  std::function<Made(const AdaptedModel&)> make;
  bool statistics_only = false, affine_only = false;
};

Made align_to_source(const AdaptedModel& model) {
  LIMBER_ASSIGN(SourceFeatures source, collect_source_features(model, std::vector{small_images(20, 5, 0)}));
  return Alignment::create(model, std::move(source), {.steps = 3});
}

std::vector<MethodCase> all_methods() {
  const auto shot = [](double pseudo_share) {
    return [=](const AdaptedModel& model) {
      return Shot::create(model, {.steps = 3, .rate = 0.01, .pseudo_share = pseudo_share, .refresh = 2});
    };
  };
  return {{"bn", [](const AdaptedModel& m) { return BatchNormStatistics::create(m, {}); }, true},
          {"onda", [](const AdaptedModel& m) { return Onda::create(m, {}); }, true},
          {"tent", [](const AdaptedModel& m) { return Tent::create(m, {}); }, false, true},
          {"shot_im", shot(0)},
          {"shot", shot(0.3)},
          {"align", align_to_source}};
}

bool is_statistics(const std::string& name) { return name.starts_with("mean") || name.starts_with("var"); }
bool is_affine(const std::string& name) { return name.size() == 2 && (name[0] == 's' || name[0] == 'b'); }

class EachMethod : public testing::TestWithParam<MethodCase> {
 protected:
  static std::unique_ptr<Strategy> make(const AdaptedModel& model) {
    auto made = GetParam().make(model);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? *std::move(made) : nullptr;
  }
  static void adapt(Strategy& method, const Tensor& images) {
    const auto changed = method.adapt(images);
    ASSERT_TRUE(changed.ok()) << changed.status().message();
    EXPECT_TRUE(*changed);
  }
  static std::map<std::string, std::string> model_bytes(const AdaptedModel& model) {
    auto bytes = test::bytes_of(*model.weights);
    std::erase_if(bytes, [](const auto& each) { return each.first.starts_with("optimizer/"); });
    return bytes;
  }
};
INSTANTIATE_TEST_SUITE_P(Methods, EachMethod, testing::ValuesIn(all_methods()),
                         [](const auto& info) { return info.param.name; });

TEST_P(EachMethod, ChangesWhatItSaysAndNeverTheClassifier) {
  const AdaptedModel model = small_model();
  const auto before = model_bytes(model);
  const auto method = make(model);
  ASSERT_TRUE(method);
  EXPECT_FALSE(method->name().empty());
  EXPECT_GT(method->batch(), 0);
  adapt(*method, small_images(12, 1));
  for (const auto& [name, old] : before) {
    const bool changed = model_bytes(model).at(name) != old;
    const bool may = is_statistics(name) || (!GetParam().statistics_only && is_affine(name)) ||
                     (!GetParam().statistics_only && !GetParam().affine_only && name[0] == 'w');
    EXPECT_EQ(changed, may) << name;
  }
}

TEST_P(EachMethod, ASnapshotNeverSeesIt) {
  const AdaptedModel source = small_model();
  const WeightSnapshot before = *source.weights->snapshot();
  AdaptedModel own = source;
  own.weights = std::make_shared<Parameters>(before);
  const auto method = make(own);
  ASSERT_TRUE(method);
  const auto bytes = test::bytes_of(before.weights());
  adapt(*method, small_images(12, 1));
  EXPECT_EQ(test::bytes_of(before.weights()), bytes);
  EXPECT_EQ(model_bytes(source), bytes);
}

// Windows of any size, in any order, and the same bytes when everything starts again.
TEST_P(EachMethod, StartsAgainAsIfNothingHadHappened) {
  const AdaptedModel model = small_model();
  const WeightSnapshot source = *model.weights->snapshot();
  const auto method = make(model);
  ASSERT_TRUE(method);
  const auto run = [&] {
    adapt(*method, small_images(12, 1));
    adapt(*method, small_images(2, 2));
    adapt(*method, small_images(25, 3));
    adapt(*method, small_images(12, 4));
    return model_bytes(model);
  };
  const auto once = run();
  for (const std::string& name : source.weights().names())
    model.weights->set(name, *source.weights().get(name));
  ASSERT_TRUE(method->reset().ok());
  EXPECT_EQ(run(), once);
}

TEST_P(EachMethod, WhatItCannotUseIsSaidAndChangesNothing) {
  const AdaptedModel model = small_model();
  const auto method = make(model);
  ASSERT_TRUE(method);
  const auto before = model_bytes(model);
  const auto changed = method->adapt(*Tensor::zeros({DType::kF32, {4, 1, 8, 8}}));
  expect_failure(changed, Code::kInvalidArgument, {"f32[4,1,8,8]", "f32[N,3,8,8]"});
  EXPECT_EQ(model_bytes(model), before);
}

TEST_P(EachMethod, NumbersThatAreNoneNeverCountAsLearnt) {
  const AdaptedModel model = small_model();
  const auto method = make(model);
  ASSERT_TRUE(method);
  Tensor images = small_images(12, 1);
  images.data<float>()[70] = NAN;
  EXPECT_FALSE(method->adapt(images).ok());
}

TEST(Methods, ALastStepThatMakesWeightsNoNumbersIsAFailure) {
  const AdaptedModel model = small_model();
  const auto shot = Shot::create(model, {.steps = 1, .rate = 1e39});  // beyond what a float holds
  ASSERT_TRUE(shot.ok()) << shot.status().message();
  expect_failure((*shot)->adapt(small_images(12, 1)), Code::kInternal, {"'shot-im'", "after 1 steps"});
}

TEST(Methods, WithoutNormalisationStatisticsAreRefused) {
  expect_failure(BatchNormStatistics::create(plain_model(), {}), Code::kInvalidArgument, {"'bn'", "none"});
  expect_failure(Onda::create(plain_model(), {}), Code::kInvalidArgument, {"'onda'"});
  expect_failure(Tent::create(plain_model(), {}), Code::kInvalidArgument, {"'tent'"});
}

TEST(Methods, OptionsThatMakeNoSenseAreRefused) {
  const AdaptedModel model = small_model();
  expect_failure(BatchNormStatistics::create(model, {.prior = -1}), Code::kInvalidArgument, {"-1 images"});
  expect_failure(Onda::create(model, {.images = 0}), Code::kInvalidArgument, {"every 0 images"});
  expect_failure(Onda::create(model, {.momentum = 0}), Code::kInvalidArgument, {"momentum"});
  expect_failure(Tent::create(model, {.steps = 0}), Code::kInvalidArgument, {"0 steps"});
  expect_failure(Shot::create(model, {.steps = 0}), Code::kInvalidArgument, {"0 steps"});
  expect_failure(Shot::create(model, {.refresh = 0}), Code::kInvalidArgument, {"every 0 steps"});
  const SourceFeatures source{Tensor::from({1.0f, 2.0f}, {1, 2})};
  expect_failure(Alignment::create(model, source, {}), Code::kInvalidArgument, {"2 numbers", "reads 6"});
  const SourceFeatures fits = *collect_source_features(model, std::vector{small_images(3, 1)});
  expect_failure(Alignment::create(model, fits, {.loss = LossKind::kEntropy}), Code::kInvalidArgument,
                 {"'entropy'"});
  expect_failure(Alignment::create(model, fits, {.steps = 0}), Code::kInvalidArgument, {"0 steps"});
  expect_failure(collect_source_features(model, {}), Code::kInvalidArgument, {"no images"});
}

TEST(SourceFeatures, StatisticsAreThoseOfTheRows) {
  const SourceFeatures source{Tensor::from({1.0f, 4.0f, 3.0f, 4.0f, 5.0f, 10.0f}, {3, 2})};
  EXPECT_EQ(source.mean(), (std::vector<double>{3, 6}));
  EXPECT_NEAR(source.deviation()[0], std::sqrt(8.0 / 3 + kMomentsEpsilon), 1e-12);
  EXPECT_NEAR(source.deviation()[1], std::sqrt(8 + kMomentsEpsilon), 1e-12);
  EXPECT_EQ(source.covariance(), (std::vector<double>{4, 6, 6, 12}));
  EXPECT_NEAR(source.bandwidth(), (4.0 + 52 + 40) / 3, 1e-9);  // of the three pairs
}

TEST(SourceFeatures, TheFirstRowsAreKept) {
  const AdaptedModel model = small_model();
  const std::vector<Tensor> batches = {small_images(3, 1), small_images(4, 2), small_images(5, 3)};
  const auto some = collect_source_features(model, batches, 5), all = collect_source_features(model, batches);
  ASSERT_TRUE(some.ok() && all.ok());
  EXPECT_EQ(some->rows.shape(), (Shape{5, 6}));
  EXPECT_EQ(all->rows.shape(), (Shape{12, 6}));
  for (size_t i = 0; i < 30; ++i) EXPECT_EQ(some->rows.data<float>()[i], all->rows.data<float>()[i]);
}

// Two clusters; the model takes one image of the second for class 0, and nobody for class 2.
TEST(PseudoLabels, ClustersDecideAgainstThePrediction) {
  const Tensor features = Tensor::from({5.0f, 0.1f, 4.0f, 0.0f, 0.1f, 5.0f, 0.0f, 4.0f, 0.3f, 4.0f}, {5, 2});
  const Tensor logits = Tensor::from({3.0f, 0.0f, 1.0f,  //
                                      2.0f, 0.0f, 1.0f,  //
                                      0.0f, 3.0f, 2.0f,  //
                                      0.0f, 2.0f, 1.0f,  //
                                      1.0f, 0.8f, 0.9f},
                                     {5, 3});
  EXPECT_EQ(pseudo_labels(logits, features), (std::vector<int64_t>{0, 0, 1, 1, 1}));
}

TEST(PseudoLabels, OneImageKeepsItsPrediction) {
  EXPECT_EQ(pseudo_labels(Tensor::from({0.0f, 2.0f}, {1, 2}), Tensor::from({0.0f, 0.0f, 0.0f}, {1, 3})),
            (std::vector<int64_t>{1}));
}

}  // namespace
}  // namespace limber::adapt
