#include "adapt/methods/filters.h"

#include "adapt/methods/shot.h"
#include "passes/classifier.h"
#include "tests/adapt/methods/small_model.h"

namespace limber::adapt {
namespace {

FilterScores layer(std::string name, std::vector<double> scores) {
  return {name + ".w", {name + ".s", name + ".b", name + ".m", name + ".v"}, std::move(scores)};
}

TEST(Filters, TheFewestThatHoldTheShareAreChosenOverAllLayers) {
  const std::vector<FilterScores> layers = {layer("a", {1, 4, 0}), layer("b", {0, 0}), layer("c", {3, 2})};
  const FilterChoice most = choose_filters(layers, 0.8);  // 4 + 3 + 2 of 10; 7 are too little
  EXPECT_EQ(most.chosen, 3u);
  EXPECT_EQ(most.of, 7u);
  EXPECT_EQ(most.targets.names, (std::vector<std::string>{"a.w", "a.s", "a.b", "c.w", "c.s", "c.b"}));
  for (const char* name : {"a.w", "a.s", "a.b"})
    EXPECT_EQ(most.targets.channels.at(name), (std::vector<int64_t>{1}));
  for (const char* name : {"c.w", "c.s", "c.b"})
    EXPECT_EQ(most.targets.channels.at(name), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(choose_filters(layers, 0.7).chosen, 2u);  // 4 + 3 are just enough
  EXPECT_EQ(choose_filters(layers, 0.1).chosen, 1u);
}

TEST(Filters, WhereNothingMovesOneIsChosen) {
  const FilterChoice choice = choose_filters({layer("a", {0, 0})}, 0.8);
  EXPECT_EQ(choice.chosen, 1u);
  EXPECT_EQ(choice.targets.channels.at("a.w"), (std::vector<int64_t>{0}));
}

// One weight twice among what is trained would be two updates of it.
TEST(Filters, OfWeightsThatTwoLayersShareNoneAreRanked) {
  const test::Net net = test::make_net(R"(graph "shared" {
    input %x: f32[N,4,5,5]
    param %w: f32[4,4,1,1]
    param %own: f32[4,4,1,1]
    param %s1: f32[4]
    param %b1: f32[4]
    param %m1: f32[4]
    param %v1: f32[4]
    param %s2: f32[4]
    param %b2: f32[4]
    param %m2: f32[4]
    param %v2: f32[4]
    param %s3: f32[4]
    param %b3: f32[4]
    param %m3: f32[4]
    param %v3: f32[4]
    %c1: f32[N,4,5,5] = Conv(%x, %w) {dilations=[1,1], pads=[0,0,0,0], strides=[1,1]}
    %n1: f32[N,4,5,5] = BatchNorm(%c1, %s1, %b1, %m1, %v1) {epsilon=1e-05}
    %c2: f32[N,4,5,5] = Conv(%n1, %w) {dilations=[1,1], pads=[0,0,0,0], strides=[1,1]}
    %n2: f32[N,4,5,5] = BatchNorm(%c2, %s2, %b2, %m2, %v2) {epsilon=1e-05}
    %c3: f32[N,4,5,5] = Conv(%n2, %own) {dilations=[1,1], pads=[0,0,0,0], strides=[1,1]}
    %n3: f32[N,4,5,5] = BatchNorm(%c3, %s3, %b3, %m3, %v3) {epsilon=1e-05}
    output %n3 as "y"
  })");
  const auto layers = normalised_filters(net.graph);
  ASSERT_EQ(layers.size(), 1u);
  EXPECT_EQ(layers[0].weight, "own");
}

// Scores are the gradients of scale and shift: differences of the loss, one channel at a time.
TEST(Filters, ScoresAreWhatTheLossMovesBy) {
  const AdaptedModel model = small_model();
  const Tensor images = small_images(6, 1);
  const auto ranking = FilterRanking::create(model, {.kind = LossKind::kEntropy});
  ASSERT_TRUE(ranking.ok()) << ranking.status().message();
  const auto before = test::bytes_of(*model.weights);
  const auto layers = (*ranking)->rank(images);
  ASSERT_TRUE(layers.ok()) << layers.status().message();
  EXPECT_EQ(test::bytes_of(*model.weights), before);
  ASSERT_EQ(layers->size(), 2u);
  EXPECT_EQ((*layers)[0].weight, "w1");
  EXPECT_EQ((*layers)[1].weight, "w2");
  const auto loss = [&] {
    const StepOptions options{.batch = 6, .loss = {.kind = LossKind::kEntropy}};
    const auto prepared = prepare_model(logits_of(model.graph), options);
    const std::vector<std::string> names = {"s1"};
    const test::Net step{*training_step(*prepared, names, options, Phase::kMeasure), model.weights};
    const auto session = test::make_session(step, test::ref_backends(), {.optimize = false});
    std::memcpy(session->input(0).raw(), images.raw(), images.bytes());
    EXPECT_TRUE(session->run().ok());
    return element_as_double(session->output(0), 0);
  };
  constexpr float kStep = 1e-2f;
  for (const size_t channel : {0, 3}) {
    double score = 0;
    for (const char* name : {"s2", "b2"}) {
      const auto moved = [&](float by) {
        model.weights->writable(name)->data<float>()[channel] += by;
        model.weights->mark_changed(std::vector<std::string>{name});
        return loss();
      };
      const double above = moved(kStep), below = moved(-2 * kStep);
      moved(kStep);
      score += std::abs(above - below) / (2 * kStep);
    }
    EXPECT_NEAR((*layers)[1].scores[channel], score, 2e-3 * (1 + score)) << channel;
  }
}

TEST(Filters, OnlyChosenFiltersOfASurrogateAreTrained) {
  const AdaptedModel model = small_model();
  const auto before = test::bytes_of(*model.weights);
  const Tensor images = small_images(12, 2);
  const auto ranking = FilterRanking::create(model, {.kind = LossKind::kInfoMax});
  const WindowTargets targets = choose_filters(*(*ranking)->rank(images), 0.5).targets;
  const auto shot = Shot::create(model, {.steps = 3, .rate = 0.05, .filter_share = 0.5});
  ASSERT_TRUE(shot.ok()) << shot.status().message();
  const auto changed = (*shot)->adapt(images);
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  size_t moved = 0, still = 0;
  for (const char* name : {"w1", "s1", "b1", "w2", "s2", "b2", "head", "head_bias"}) {
    const Tensor now = *model.weights->get(name);
    const auto* old = reinterpret_cast<const float*>(before.at(name).data());
    const auto part = targets.channels.find(name);
    const int64_t per_channel = now.elements() / now.shape().dim(0);
    for (int64_t i = 0; i < now.elements(); ++i) {
      const bool chosen =
          part != targets.channels.end() &&
          std::find(part->second.begin(), part->second.end(), i / per_channel) != part->second.end();
      EXPECT_EQ(now.data<float>()[static_cast<size_t>(i)] != old[i], chosen) << name << " element " << i;
      (chosen ? moved : still) += 1;
    }
  }
  EXPECT_GT(moved, 0u);
  EXPECT_GT(still, 0u);
}

TEST(Filters, AModelWithoutNormalisationIsSaid) {
  const AdaptedModel plain = plain_model();
  const auto shot = Shot::create(plain, {.filter_share = 0.5});
  expect_failure(shot, Code::kInvalidArgument, {"no convolution of the model has one", "all filters"});
  for (const double share : {0.0, -1.0, 1.5}) {
    expect_failure(Shot::create(small_model(), {.filter_share = share}), Code::kInvalidArgument,
                   {fmt::format("the share {}", share)});
  }
}

}  // namespace
}  // namespace limber::adapt
