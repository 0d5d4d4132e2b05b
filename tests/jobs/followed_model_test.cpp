#include "jobs/followed_model.h"

#include "data/dataset.h"
#include "tests/jobs/tinted.h"
#include "tests/serve/elastic_source.h"

namespace limber {
namespace {

using test::contains;
using test::prepared;
using test::tinted_images;
using test::TintedImages;
using test::Weather;

ServedSource tinted_source() {
  const test::Net net = test::tinted_net();
  ServedSource source{.name = "tinted", .graph = net.graph, .params = net.params};
  source.variants.push_back({.name = "original", .timed = false});
  source.images = Preprocess{.height = 16, .width = 16};
  return source;
}

std::shared_ptr<const Dataset> tinted_data(int64_t count) {
  const TintedImages images = tinted_images(count, 1);
  auto data =
      open_arrays(images.pixels, Tensor::from(std::span<const int64_t>(images.labels), {count}), "tinted");
  EXPECT_TRUE(data.ok()) << data.status().message();
  return *std::move(data);
}

class FollowedModelTest : public testing::Test {
 protected:
  FollowedModelTest() {
    settings_.adapt = {.method = "bn", .data = "tinted", .window = 50};
    settings_.backends = test::served_backends();
    settings_.tell = [this](const FollowedRecord& event, double) { told_.push_back(event); };
    ServeOptions options;
    options.governor.policy = Policy::kFixed;
    options.ready.workers = 1;
    model_ = *ServedModel::start(tinted_source(), test::served_backends(), options);
  }

  void follow() {
    auto followed = FollowedModel::create(model_, tinted_data(400), settings_);
    ASSERT_TRUE(followed.ok()) << followed.status().message();
    followed_ = *std::move(followed);
    const auto studied = followed_->study();
    ASSERT_TRUE(studied.ok()) << studied.status().message();
    ASSERT_TRUE(*studied);
  }

  // The share that is right; what was asked is then looked at. By fifties, so that nobody waits for more.
  double ask(const TintedImages& images) {
    int64_t right = 0;
    const Tensor all = prepared(images);
    const size_t row = all.data<float>().size() / images.labels.size();
    for (size_t first = 0; first < images.labels.size(); first += 50) {
      InferRequest request{.model = "tinted"};
      const Tensor rows = Tensor::from(
          std::span<const float>(all.data<float>()).subspan(first * row, 50 * row), {50, 3, 16, 16});
      request.inputs.push_back({"x", rows, {}});
      const InferResponse response = test::ask(*model_, std::move(request));
      EXPECT_TRUE(response.status.ok()) << response.status.message;
      const auto logits = response.outputs[0].tensor.data<float>();
      for (size_t i = 0; i < 50; ++i) {
        const auto best = std::max_element(logits.begin() + static_cast<std::ptrdiff_t>(3 * i),
                                           logits.begin() + static_cast<std::ptrdiff_t>(3 * i + 3));
        right +=
            best - logits.begin() - static_cast<std::ptrdiff_t>(3 * i) == images.labels[first + i] ? 1 : 0;
      }
      if (followed_ != nullptr) step_until_nothing_is_left();
    }
    return static_cast<double>(right) / static_cast<double>(images.labels.size());
  }
  void step_until_nothing_is_left() {
    while (true) {
      const auto worked = followed_->step();
      ASSERT_TRUE(worked.ok()) << worked.status().message();
      if (!*worked) return;
    }
  }
  void wait_until(const std::string& net) const {
    for (int i = 0; i < 20000 && model_->view().net != net; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(model_->view().net, net) << model_->view().problem;
  }
  int64_t told(const std::string& event) const {
    return std::count_if(told_.begin(), told_.end(),
                         [&](const FollowedRecord& r) { return r.event == event; });
  }

  FollowedModelSettings settings_;
  std::shared_ptr<ServedModel> model_;
  std::vector<FollowedRecord> told_;
  std::unique_ptr<FollowedModel> followed_;
};

TEST_F(FollowedModelTest, AnotherDomainIsNoticedAndLearntFrom) {
  const double before = ask(tinted_images(300, 5, Weather::kFog));
  EXPECT_LT(before, 0.65);
  follow();
  EXPECT_GT(ask(tinted_images(200, 4)), 0.8);
  EXPECT_EQ(told("domain"), 0);
  EXPECT_EQ(told("adapted"), 0) << "nothing to gain";
  EXPECT_EQ(model_->followed()->state, "following");
  EXPECT_NEAR(*model_->followed()->source_accuracy, 0.9, 0.07);

  ask(tinted_images(400, 6, Weather::kFog));
  EXPECT_EQ(told("alarm"), 1);
  EXPECT_GE(told("adapted"), 1);
  const auto adapted =
      std::find_if(told_.begin(), told_.end(), [](const auto& r) { return r.event == "adapted"; });
  ASSERT_NE(adapted, told_.end());
  EXPECT_EQ(adapted->model, "tinted");
  EXPECT_TRUE(contains(adapted->net, "bn after")) << adapted->net;
  EXPECT_FALSE(adapted->reason.empty());
  const auto followed = model_->followed();
  EXPECT_EQ(followed->adapted, static_cast<uint64_t>(told("adapted")));
  EXPECT_EQ(followed->seen, 600U);
  EXPECT_GT(followed->cpu_seconds, 0);
  EXPECT_EQ(followed->points.size(), 6U) << "one each hundred";
  EXPECT_FALSE(followed->net.empty());
  wait_until(followed->net);
  EXPECT_GT(ask(tinted_images(300, 5, Weather::kFog)), before + 0.2);
}

// One needs images of the source before it begins; what the other cuts is another network.
TEST_F(FollowedModelTest, AlignmentAndSurrogatesAreFollowed) {
  for (const char* method : {"align", "surrogate"}) {
    settings_.adapt.method = method;
    settings_.adapt.settings.operations = 0.9;
    follow();
    ask(tinted_images(400, 6, Weather::kFog));
    EXPECT_EQ(told("failed"), 0) << method;
    EXPECT_GE(told("adapted") + told("rejected"), 1) << method;
    followed_.reset();
    told_.clear();
  }
}

TEST_F(FollowedModelTest, NoiseIsCountedAndNotLearntFrom) {
  follow();
  TintedImages noise = tinted_images(300, 4);
  Random random(3);
  for (uint8_t& value : noise.pixels.data<uint8_t>()) value = static_cast<uint8_t>(random.below(256));
  ask(noise);
  TintedImages black = tinted_images(100, 4);
  for (uint8_t& value : black.pixels.data<uint8_t>()) value = 0;
  ask(black);
  const auto followed = model_->followed();
  EXPECT_EQ(followed->seen, 400U);
  EXPECT_EQ(followed->bad, 400U);
  EXPECT_EQ(followed->adapted, 0U);
  EXPECT_EQ(model_->view().net, "");
}

TEST_F(FollowedModelTest, WhatAnswersStaysWhenNobodyFollowsAnyMore) {
  follow();
  ask(tinted_images(400, 6, Weather::kFog));
  const std::string net = model_->followed()->net;
  ASSERT_FALSE(net.empty());
  wait_until(net);
  followed_.reset();
  ask(tinted_images(50, 6));
  EXPECT_EQ(model_->view().net, net);
}

TEST_F(FollowedModelTest, AStopEndsTheStudy) {
  settings_.go_on = [] { return false; };
  const auto followed = FollowedModel::create(model_, tinted_data(400), settings_);
  ASSERT_TRUE(followed.ok()) << followed.status().message();
  const auto studied = (*followed)->study();
  ASSERT_TRUE(studied.ok()) << studied.status().message();
  EXPECT_FALSE(*studied);
}

TEST_F(FollowedModelTest, RefusesWhatCannotBeFollowed) {
  const auto refused = [&](auto change, const std::string& words) {
    ServedSource source = tinted_source();
    FollowedModelSettings settings = settings_;
    auto data = tinted_data(200);
    change(source, settings, data);
    ServeOptions options;
    options.ready.workers = 1;
    std::shared_ptr<ServedModel> model =
        *ServedModel::start(std::move(source), test::served_backends(), options);
    const auto followed = FollowedModel::create(model, data, settings);
    ASSERT_FALSE(followed.ok()) << words;
    EXPECT_TRUE(contains(followed.status().message(), "tinted") &&
                contains(followed.status().message(), words))
        << followed.status().message();
  };
  refused([](auto& source, auto&, auto&) { source.images.reset(); }, "takes no images");
  refused([](auto&, auto&, auto& data) { data = *open_dataset("synthetic:size=16,count=200"); }, "classes");
  refused(
      [](auto& source, auto&, auto&) {
        std::string text(test::kTintedNet);
        for (size_t at = 0; (at = text.find_first_of("N", at)) != std::string::npos; ++at)
          if (text[at - 1] == '[' || text[at - 1] == '<') text[at] = '1';
        source.graph = test::make_net(text).graph;
      },
      "one image at a time");
}

TEST(ServeAdaptOptions, WhatCannotWorkIsRefused) {
  const ServeAdaptOptions good{.method = "bn", .data = "photos"};
  EXPECT_TRUE(check(good).ok());
  EXPECT_TRUE(check(ServeAdaptOptions()).ok());
  const auto message = [&](auto change) {
    ServeAdaptOptions options = good;
    change(options);
    return check(options).message();
  };
  EXPECT_TRUE(contains(message([](auto& o) { o.method = "bm"; }), "Did you mean 'bn'?"));
  EXPECT_TRUE(contains(message([](auto& o) { o.method = "none"; }), "'none'"));
  EXPECT_TRUE(contains(message([](auto& o) { o.method = ""; }), "no method is named"));
  EXPECT_TRUE(contains(message([](auto& o) { o.data = ""; }), "labelled images"));
  EXPECT_TRUE(contains(message([](auto& o) { o.share = 0; }), "share of 0"));
  EXPECT_TRUE(contains(message([](auto& o) { o.share = 1.5; }), "share of 1.5"));
  EXPECT_TRUE(contains(message([](auto& o) { o.window = 3; }), "window is 3"));
  EXPECT_TRUE(contains(message([](auto& o) { o.source_images = 20; }), "source_images is 20"));
}

}  // namespace
}  // namespace limber
