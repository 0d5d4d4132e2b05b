// Another network, or other weights, in a model that answers.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "data/image.h"
#include "tests/serve/elastic_source.h"

namespace limber {
namespace {

using test::ask;
using test::bytes_of;
using test::elastic_source;
using test::request_for;
using test::run_on;
using test::served_backends;

ServeOptions options_of(Policy policy = Policy::kFixed) {
  ServeOptions options;
  options.governor.policy = policy;
  options.ready.workers = 2;
  options.least_share = 0;
  return options;
}

Tensor drawn_images(uint64_t seed, int64_t count) {
  Random random(seed);
  Tensor images = *Tensor::allocate({DType::kF32, Shape{count, 3, 8, 8}});
  for (float& v : images.data<float>()) v = static_cast<float>(random.uniform(-1, 1));
  return images;
}

// The graph with all weights a little larger.
std::shared_ptr<const ServedNet> grown(const std::string& name, const Graph& graph,
                                       const ServedSource& source, float factor) {
  Parameters weights(*source.params->snapshot());
  for (const std::string& tensor : weights.names()) {
    Tensor values = *weights.writable(tensor);
    for (float& v : values.data<float>()) v *= factor;
    weights.mark_changed(std::span(&tensor, 1));
  }
  return std::make_shared<const ServedNet>(ServedNet{name, graph, *weights.snapshot()});
}

std::string answer_of(const ServedNet& net, const Tensor& images) {
  return bytes_of(run_on(net.graph, net.weights.weights(), images));
}

void wait_for_net(const ServedModel& model, const std::string& name) {
  const double end = now_seconds() + 60;
  while (model.view().net != name && now_seconds() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_EQ(model.view().net, name) << model.view().problem;
}

// Each answer is that of exactly one network, and none is lost.
TEST(ServedNet, AThousandNetsUnderLoadLoseNothing) {
  const ServedSource source = elastic_source(1);
  const Tensor images = drawn_images(7, 1);
  const Graph smaller = *materialize(*source.elastic, source.variants[1].variant);
  const std::vector<std::shared_ptr<const ServedNet>> nets = {nullptr, grown("a", source.graph, source, 1.1F),
                                                              grown("b", source.graph, source, 0.9F),
                                                              grown("c", smaller, source, 1.05F)};
  std::map<std::string, std::string> answers = {
      {"original", test::answers_of(source, images).at("original")}};
  for (const auto& net : nets)
    if (net != nullptr) answers["original (" + net->name + ")"] = answer_of(*net, images);

  const auto model = *ServedModel::start(source, served_backends(), options_of());
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
        failed += response.status.ok() ? 0 : 1;
        if (!response.status.ok()) continue;
        const auto right = answers.find(response.variant);
        wrong += right != answers.end() && bytes_of(response.outputs[0].tensor) == right->second ? 0 : 1;
        const std::lock_guard lock(mutex);
        ++seen[response.variant];
      }
    });
  Random random(2);
  for (int i = 0; i < 1000; ++i) {
    const auto& net = i % 100 == 0 ? nets[3] : nets[random.below(3)];
    ASSERT_TRUE(model->use_net(net).ok());
    if (i % 5 != 0) continue;  // the next one comes before this one is ready
    wait_for_net(*model, net != nullptr ? net->name : "");
    const int before = asked;
    while (asked < before + 4) std::this_thread::yield();
  }
  over = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(seen.size(), 4U);
}

TEST(ServedNet, WhatWasAskedForLastCounts) {
  const ServedSource source = elastic_source(1);
  const Tensor images = drawn_images(7, 3);
  const auto model = *ServedModel::start(source, served_backends(), options_of());
  const auto a = grown("a", source.graph, source, 1.1F), b = grown("b", source.graph, source, 0.9F);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(model->use_net(i % 2 == 0 ? a : nullptr).ok());
  ASSERT_TRUE(model->use_net(b).ok());
  wait_for_net(*model, "b");
  const InferResponse response = ask(*model, request_for(source, images));
  EXPECT_EQ(response.variant, "original (b)");
  EXPECT_EQ(bytes_of(response.outputs[0].tensor), answer_of(*b, images));
  EXPECT_EQ(model->stats().totals().switches, 0U) << "a network is no variant";
}

TEST(ServedNet, WeightsThatNobodyRunsAreFreed) {
  const ServedSource source = elastic_source(1);
  const auto model = *ServedModel::start(source, served_backends(), options_of());
  std::weak_ptr<const Parameters> weights;
  {
    const auto net = grown("a", source.graph, source, 1.1F);
    weights = net->weights.shared_weights();
    ASSERT_TRUE(model->use_net(net).ok());
    wait_for_net(*model, "a");
  }
  EXPECT_FALSE(weights.expired());
  ASSERT_TRUE(model->use_net(nullptr).ok());
  wait_for_net(*model, "");
  ASSERT_TRUE(ask(*model, request_for(source, drawn_images(7, 1))).status.ok());
  EXPECT_TRUE(weights.expired());
}

// What was learnt on the original says nothing of variants.
TEST(ServedNet, VariantsStayAsTheyAre) {
  const ServedSource source = elastic_source(1);
  const Tensor images = drawn_images(7, 2);
  const auto answers = test::answers_of(source, images);
  const auto model = *ServedModel::start(source, served_backends(), options_of(Policy::kFeedback));
  const std::string other = source.variants[1].name;
  ASSERT_TRUE(model->force(other).ok());
  const auto net = grown("a", source.graph, source, 1.1F);
  ASSERT_TRUE(model->use_net(net).ok());
  wait_for_net(*model, "a");
  const InferResponse by_other = ask(*model, request_for(source, images));
  EXPECT_EQ(by_other.variant, other);
  EXPECT_EQ(bytes_of(by_other.outputs[0].tensor), answers.at(other));
  ASSERT_TRUE(model->force("original").ok());
  const InferResponse by_net = ask(*model, request_for(source, images));
  EXPECT_EQ(by_net.variant, "original (a)");
  EXPECT_EQ(bytes_of(by_net.outputs[0].tensor), answer_of(*net, images));
}

TEST(ServedNet, RefusesWhatCannotAnswerInThePlaceOfTheOriginal) {
  const ServedSource source = elastic_source(1);
  const auto model = *ServedModel::start(source, served_backends(), options_of());
  Graph graph;
  graph.add_output(graph.add_input("image", {DType::kF32, Shape{Dim(Symbol("N")), 3, 9, 9}}), "logits");
  const Status other = model->use_net(
      std::make_shared<const ServedNet>(ServedNet{"large", graph, *source.params->snapshot()}));
  EXPECT_EQ(other.code(), Code::kInvalidArgument);
  EXPECT_NE(other.message().find("network 'large'"), std::string::npos) << other.message();

  ServedSource poor = elastic_source(1);
  for (ServedVariant& one : poor.variants) one.point.accuracy = one.name == "original" ? 0.5 : 0.9;
  ServeOptions options = options_of(Policy::kFeedback);
  options.governor.limits.accuracy = 0.6;
  const auto without = *ServedModel::start(poor, served_backends(), options);
  EXPECT_EQ(without->use_net(nullptr).code(), Code::kNotFound);
}

TEST(ServedNet, ATapSeesWhatTheModelWasAsked) {
  ServedSource source = elastic_source(1);
  source.images = Preprocess{.height = 8, .width = 8};
  const auto model = *ServedModel::start(source, served_backends(), options_of());
  const Tensor images = drawn_images(7, 5);
  ASSERT_TRUE(ask(*model, request_for(source, images)).status.ok()) << "nobody looks yet";
  const auto tap = std::make_shared<RequestTap>(3 * 8 * 8, 16);
  model->use_tap(tap);
  ASSERT_TRUE(ask(*model, request_for(source, images)).status.ok());
  const Tensor drawn = *draw_image(20, 14, 3);
  InferRequest file = request_for(source, Tensor());
  file.inputs[0].images = {*encode_png(drawn)};
  ASSERT_TRUE(ask(*model, file).status.ok());
  file.inputs[0].images = {"no image at all"};
  ASSERT_FALSE(ask(*model, file).status.ok());
  std::vector<float> seen;
  ASSERT_EQ(tap->take(16, seen), 6U) << "what cannot be read is not shown";
  const auto asked = images.data<float>();
  EXPECT_TRUE(std::equal(asked.begin(), asked.end(), seen.begin()));
  std::vector<float> prepared(3 * 8 * 8);
  ASSERT_TRUE(Preprocessor::make(*source.images)->apply(drawn, prepared).ok());
  EXPECT_TRUE(std::equal(prepared.begin(), prepared.end(), seen.begin() + asked.size()));
  model->use_tap(nullptr);
  ASSERT_TRUE(ask(*model, request_for(source, images)).status.ok());
  EXPECT_EQ(tap->take(16, seen), 0U);
}

}  // namespace
}  // namespace limber
