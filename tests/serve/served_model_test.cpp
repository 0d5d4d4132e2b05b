#include "serve/served_model.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "data/image.h"
#include "tests/serve/elastic_source.h"

namespace limber {
namespace {

using test::ask;
using test::elastic_source;
using test::request_for;
using test::served_backends;

Tensor rows(const Tensor& images, int64_t first, int64_t count) {
  TensorType type = images.type();
  const size_t row = type.bytes() / static_cast<size_t>(type.shape.dim(0));
  type.shape[0] = Dim(count);
  Tensor part = *Tensor::allocate(type);
  std::memcpy(part.raw(), static_cast<const std::byte*>(images.raw()) + static_cast<size_t>(first) * row,
              static_cast<size_t>(count) * row);
  return part;
}

Tensor many_images(uint64_t seed, int64_t count) {
  Random random(seed);
  Tensor images = *Tensor::allocate({DType::kF32, Shape{count, 3, 8, 8}});
  for (float& v : images.data<float>()) v = static_cast<float>(random.uniform(-1, 1));
  return images;
}

ServeOptions options_with(Policy policy, double budget_s = 10) {
  ServeOptions options;
  options.governor.policy = policy;
  options.governor.budget_s = budget_s;
  options.ready.workers = 2;
  options.least_share = 0;  // all variants, however they were judged
  return options;
}

TEST(ServedModel, AnswersAsTheModelDoes) {
  const ServedSource source = elastic_source(1);
  const Tensor images = many_images(7, 5);
  const auto answers = test::answers_of(source, images);
  const auto model = *ServedModel::start(source, served_backends(), options_with(Policy::kFixed));
  const InferResponse all = ask(*model, request_for(source, images));
  ASSERT_TRUE(all.status.ok()) << all.status.message;
  EXPECT_EQ(all.variant, "original");
  EXPECT_EQ(all.outputs[0].name, "logits");
  EXPECT_EQ(test::bytes_of(all.outputs[0].tensor), answers.at("original"));
  // Row by row it is the same, in whatever batches they were computed.
  const size_t row = answers.at("original").size() / 5;
  for (int64_t i = 0; i < 5; ++i) {
    const InferResponse one = ask(*model, request_for(source, rows(images, i, 1)));
    ASSERT_TRUE(one.status.ok());
    EXPECT_EQ(test::bytes_of(one.outputs[0].tensor),
              answers.at("original").substr(static_cast<size_t>(i) * row, row));
  }
  EXPECT_EQ(model->stats().totals().rows, 10U);
}

TEST(ServedModel, RefusesWhatItCannotTake) {
  const ServedSource source = elastic_source(1);
  const auto model = *ServedModel::start(source, served_backends(), options_with(Policy::kFixed));
  const InferRequest good = request_for(source, many_images(7, 1));
  const std::string input = good.inputs[0].name;
  struct Case {
    std::function<void(InferRequest&)> spoil;
    std::string message;
  };
  const std::vector<Case> cases = {
      {[](InferRequest& r) { r.inputs.clear(); }, "0 inputs were sent; expected 1: " + input},
      {[](InferRequest& r) { r.inputs[0].name = "nobody"; },
       "input '" + input + "' is missing; expected: " + input},
      {[](InferRequest& r) {
         r.inputs[0].tensor = *Tensor::zeros({DType::kF32, Shape{1, 3, 9, 8}});
       },
       "input '" + input + "' is f32[1,3,9,8]; expected f32[-1,3,8,8]"},
      {[](InferRequest& r) {
         r.inputs[0].tensor = *Tensor::zeros({DType::kF64, Shape{1, 3, 8, 8}});
       },
       "input '" + input + "' is f64[1,3,8,8]; expected f32[-1,3,8,8]"},
      {[](InferRequest& r) {
         r.inputs[0].tensor = *Tensor::zeros({DType::kF32, Shape{0, 3, 8, 8}});
       },
       "the inputs have no rows; expected 1 or more"},
      {[](InferRequest& r) { r.outputs = {"probability"}; }, "no output 'probability'; there are: logits"},
      {[](InferRequest& r) { r.inputs[0].images = {"x"}; },
       "input '" + input +
           "' was sent as bytes, and the model takes no images there; expected f32[-1,3,8,8]"},
  };
  for (const Case& one : cases) {
    InferRequest request = good;
    one.spoil(request);
    const InferResponse response = ask(*model, std::move(request));
    EXPECT_EQ(response.status.refusal, Refusal::kBadRequest);
    EXPECT_EQ(response.status.message, one.message);
  }
  EXPECT_EQ(model->stats().totals().all_refused(), cases.size());
  EXPECT_TRUE(ask(*model, good).status.ok());
}

TEST(ServedModel, TakesImagesAsTheyLieInFiles) {
  ServedSource source = elastic_source(1);
  source.images = Preprocess{.height = 8, .width = 8};
  const Tensor drawn = *draw_image(20, 14, 3);
  const auto preprocessor = *Preprocessor::make(*source.images);
  Tensor pixels = *Tensor::allocate({DType::kF32, Shape{1, 3, 8, 8}});
  ASSERT_TRUE(preprocessor.apply(drawn, pixels.data<float>()).ok());

  const auto model = *ServedModel::start(source, served_backends(), options_with(Policy::kFixed));
  EXPECT_TRUE(model->metadata().takes_images);
  InferRequest request = request_for(source, Tensor());
  request.inputs[0].images = {*encode_png(drawn)};
  const InferResponse by_file = ask(*model, request), by_pixels = ask(*model, request_for(source, pixels));
  ASSERT_TRUE(by_file.status.ok()) << by_file.status.message;
  EXPECT_EQ(test::bytes_of(by_file.outputs[0].tensor), test::bytes_of(by_pixels.outputs[0].tensor));
  request.inputs[0].images = {"no image at all"};
  EXPECT_EQ(ask(*model, request).status.refusal, Refusal::kBadRequest);
}

TEST(ServedModel, DoesNotDoWhatIsTooLate) {
  const ServedSource source = elastic_source(1);
  const auto model = *ServedModel::start(source, served_backends(), options_with(Policy::kFixed));
  InferRequest request = request_for(source, many_images(7, 1));
  request.deadline = now_seconds() - 1;
  const InferResponse response = ask(*model, std::move(request));
  EXPECT_EQ(response.status.refusal, Refusal::kTooLate);
  EXPECT_EQ(model->stats().totals().answered, 0U);
}

TEST(ServedModel, AFullQueueSaysWhenToComeBack) {
  const ServedSource source = elastic_source(1);
  ServeOptions options = options_with(Policy::kFixed);
  options.queue_limit = 2;
  options.ready.workers = 1;
  const auto model = *ServedModel::start(source, served_backends(), options);
  std::atomic<int> answered = 0, overloaded = 0;
  constexpr int kRequests = 400;
  for (int i = 0; i < kRequests; ++i) {
    model->infer(request_for(source, many_images(7, 64)), [&](const InferResponse& response) {
      if (response.status.refusal == Refusal::kOverloaded) {
        EXPECT_GT(response.status.retry_after_s, 0);
        ++overloaded;
      }
      ++answered;
    });
  }
  while (answered < kRequests) std::this_thread::yield();
  EXPECT_GT(overloaded, 0);
  EXPECT_LT(overloaded, kRequests);
}

TEST(ServedModel, EndsOnlyWhenWhatWaitsIsAnswered) {
  const ServedSource source = elastic_source(1);
  std::atomic<int> answered = 0;
  auto model = *ServedModel::start(source, served_backends(), options_with(Policy::kFixed));
  for (int i = 0; i < 50; ++i)
    model->infer(request_for(source, many_images(7, 4)),
                 [&](const InferResponse& r) { answered += r.status.ok() ? 1 : 0; });
  model.reset();
  EXPECT_EQ(answered, 50);
}

// Every answer is that of exactly one variant, whoever switches meanwhile, and none is lost.
TEST(ServedModel, SwitchesUnderLoadLoseNothing) {
  const ServedSource source = elastic_source(1);
  const Tensor images = many_images(7, 1);
  const auto answers = test::answers_of(source, images);
  const auto model = *ServedModel::start(source, served_backends(), options_with(Policy::kFeedback));
  std::vector<std::string> warm;
  for (const auto& entry : model->view().pool)
    if (entry.warm) warm.push_back(entry.name);
  ASSERT_GE(warm.size(), 3U);

  std::atomic<bool> over = false;
  std::atomic<int> asked = 0, wrong = 0, failed = 0;
  std::mutex mutex;
  std::map<std::string, int> seen;
  std::vector<std::thread> clients;
  for (int c = 0; c < 3; ++c)
    clients.emplace_back([&] {
      while (!over) {
        const InferResponse response = ask(*model, request_for(source, images));
        ++asked;
        if (!response.status.ok()) {
          ++failed;
          continue;
        }
        wrong += test::bytes_of(response.outputs[0].tensor) == answers.at(response.variant) ? 0 : 1;
        const std::lock_guard lock(mutex);
        ++seen[response.variant];
      }
    });
  Random random(2);
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(model->force(warm[random.below(warm.size())]).ok());
    const int before = asked;
    while (asked < before + 2) std::this_thread::yield();
  }
  over = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(seen.size(), 3U);
  EXPECT_EQ(model->force("nobody").code(), Code::kNotFound);
}

TEST(ServedModel, GoesToAQuickerVariantWhenTheMachineIsSlow) {
  const ServedSource source = elastic_source(1);
  ServeOptions options = options_with(Policy::kFeedback);
  options.governor.budget_s = 1e-9;  // nothing keeps it
  const auto model = *ServedModel::start(source, served_backends(), options);
  double wished = 0;
  model->on_nothing_fits([&](double latency_s) { wished = latency_s; });
  ASSERT_TRUE(ask(*model, request_for(source, many_images(7, 1))).status.ok());
  for (int i = 0; i < 3; ++i) model->tick({.now = now_seconds() + i});
  // Of those that are warm, the quickest.
  const auto view = model->view();
  for (const auto& entry : view.pool) {
    EXPECT_EQ(entry.active, entry.name == view.active);
    EXPECT_TRUE(!entry.warm || entry.point.latency_s >= view.estimated_s) << entry.name;
  }
  EXPECT_EQ(model->stats().totals().late, 1U);
}

TEST(ServedModel, CompilesWhatIsNotWarmInTheBackground) {
  const ServedSource source = elastic_source(1, 6);
  ServeOptions options = options_with(Policy::kFeedback);
  options.warm_limit = 2;
  const auto model = *ServedModel::start(source, served_backends(), options);
  size_t warm = 0;
  for (const auto& entry : model->view().pool) warm += entry.warm ? 1 : 0;
  EXPECT_EQ(warm, 2U);
  EXPECT_EQ(model->view().pool.size(), 6U);
  // A better one turns up: it becomes active once it is compiled, and a cold one makes room.
  ServedSource more = elastic_source(1, 7);
  std::vector<ServedVariant> found;
  for (ServedVariant& one : more.variants)
    if (std::none_of(source.variants.begin(), source.variants.end(),
                     [&](const auto& v) { return v.name == one.name; }))
      found.push_back(one);
  ASSERT_FALSE(found.empty());
  found[0].point = {1e-7, 0, 0, 0.99};
  ASSERT_TRUE(model->use_variants(found, "").ok());
  EXPECT_EQ(model->view().pool.size(), 6 + found.size());
}

// 32 rows are 32 times the work, or a little less by batches: none fits into what two rows take.
TEST(ServedModel, KnowsHowLargeRequestsAre) {
  const ServedSource source = elastic_source(1, 3);
  const auto probe = *ServedModel::start(source, served_backends(), options_with(Policy::kFixed));
  ServeOptions options = options_with(Policy::kFeedback, 2 * probe->view().estimated_s);
  const auto model = *ServedModel::start(source, served_backends(), options);
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(ask(*model, request_for(source, many_images(7, 32))).status.ok());
    model->tick({.now = now_seconds()});
  }
  const auto view = model->view();
  for (const auto& entry : view.pool) {
    EXPECT_TRUE(!entry.warm || entry.point.latency_s >= view.estimated_s) << "nothing fits: the quickest";
  }
}

// Of other images another accuracy is true: what was judged before is no longer chosen.
TEST(ServedModel, AccuraciesOfDifferentImagesAreNotCompared) {
  ServedSource source = elastic_source(1, 3);
  source.judged_by = "64 images";
  source.variants[0].point.accuracy = 0.99;
  ServeOptions options = options_with(Policy::kFeedback);
  const auto model = *ServedModel::start(source, served_backends(), options);
  std::vector<ServedVariant> found(source.variants.begin() + 1, source.variants.end());
  found[0].point.accuracy = 0.5;
  ASSERT_TRUE(model->use_variants(found, "128 images").ok());
  for (int i = 0; i < 100; ++i) model->tick({.now = now_seconds() + i});
  EXPECT_NE(model->view().active, source.variants[0].name);
}

// What is too poor to answer is a share of the best, of those that the same images judged.
TEST(ServedModel, TheLeastAccuracyFollowsWhatIsKnown) {
  ServedSource source = elastic_source(1);  // 0.95, 0.76, 0.57, 0.38
  source.judged_by = "64 images";
  ServeOptions options = options_with(Policy::kFeedback);
  options.least_share = 0.75;
  const auto model = *ServedModel::start(source, served_backends(), options);
  EXPECT_EQ(model->view().pool.size(), 2U);
  EXPECT_DOUBLE_EQ(model->view().least_accuracy, 0.75 * 0.95);
  // Harder images: half of the accuracy, and so half of what is asked for.
  std::vector<ServedVariant> found = source.variants;
  for (ServedVariant& one : found) one.point.accuracy /= 2;
  ASSERT_TRUE(model->use_variants(found, "128 images").ok());
  EXPECT_DOUBLE_EQ(model->view().least_accuracy, 0.75 * 0.95 / 2);
  for (int i = 0; i < 100; ++i) model->tick({.now = now_seconds() + i});
  EXPECT_EQ(model->view().active, "original");
  // A better one makes those too poor that were good enough.
  found.resize(1);
  found[0].point.accuracy = 0.9;
  ASSERT_TRUE(model->use_variants(found, "128 images").ok());
  EXPECT_DOUBLE_EQ(model->view().least_accuracy, 0.75 * 0.9);
}

TEST(ServedModel, WhatCannotBeServedIsRefusedAtTheStart) {
  ServedSource source = elastic_source(1);
  source.variants.clear();
  EXPECT_EQ(ServedModel::start(source, served_backends(), {}).status().code(), Code::kInvalidArgument);
}

TEST(ServedSignature, OnlyABatchMayBeOpen) {
  Graph graph;
  const ValueId x = graph.add_input("x", {DType::kF32, Shape{Dim(Symbol("N")), Dim(Symbol("W"))}});
  graph.add_output(x, "y");
  const auto signature = signature_of(graph);
  ASSERT_FALSE(signature.ok());
  EXPECT_NE(signature.status().message().find("'W' is open"), std::string::npos)
      << signature.status().message();

  Graph fixed;
  const ValueId z = fixed.add_input("z", {DType::kI64, Shape{2, 3}});
  fixed.add_output(z, "y");
  ASSERT_TRUE(signature_of(fixed).ok());
  EXPECT_FALSE(signature_of(fixed)->batched);
}

}  // namespace
}  // namespace limber
