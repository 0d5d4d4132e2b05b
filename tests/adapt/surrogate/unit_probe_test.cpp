#include "adapt/surrogate/unit_probe.h"

#include "passes/classifier.h"
#include "tests/adapt/surrogate/master_case.h"
#include "train/training_graph.h"

namespace limber::adapt {
namespace {

TEST(UnitProbe, GatesAndEntropyAreThoseOfTheImages) {
  const AdaptedModel master = gated_model();
  const PlainMaster plain = plain_of(master);
  const Tensor images = small_images(4, 1);
  const auto reading = read_gates(master, plain, images);
  ASSERT_TRUE(reading.ok()) << reading.status().message();
  ASSERT_EQ(reading->probabilities.size(), 4u);
  for (const auto& row : reading->probabilities) EXPECT_NEAR(row[0] + row[1] + row[2] + row[3], 1, 1e-6);
  // The first gate depends on nothing but the image.
  const auto weight = master.weights->get("gate/w1/weight")->data<float>();
  const auto bias = master.weights->get("gate/w1/bias")->data<float>();
  for (size_t image = 0; image < 4; ++image) {
    double mean[3] = {};
    for (size_t c = 0; c < 3; ++c) {
      for (size_t i = 0; i < 64; ++i)
        mean[c] += std::abs(images.data<float>()[(image * 3 + c) * 64 + i]) / 64;
    }
    for (size_t f = 0; f < 8; ++f) {
      double sum = bias[f];
      for (size_t c = 0; c < 3; ++c) sum += mean[c] * weight[c * 8 + f];
      EXPECT_NEAR(reading->gates[0][image][f], std::max(sum, 0.0), 1e-5);
    }
  }
}

GateReading reading_of(std::vector<std::vector<double>> first) {
  return {{std::move(first), {}, {}}, {{0.9, 0.1}, {0.6, 0.4}, {0.3, 0.7}}};
}

TEST(UnitProbe, TheHardestImageIsThatOfHighestEntropy) {
  const PlainMaster plain = plain_of(residual_model());
  const std::vector<double> a(8, 3.0), b = {0, 1, 2, 3, 4, 5, 6, 7}, c(8, 6.0);
  const GateReading reading = reading_of({a, b, c});
  EXPECT_EQ(hardest_gates(reading, plain)[0], b);
  EXPECT_NEAR(mean_gates(reading, plain)[0][1], (3.0 + 1 + 6) / 3, 1e-12);
  EXPECT_EQ(mean_gates(reading, plain)[1], std::vector<double>(6, 1.0));  // it has no gate
}

TEST(UnitProbe, LayersOfOneGroupCountAlike) {
  const PlainMaster plain = plain_of(residual_model());
  const UnitRelevance relevance = gate_relevance(
      plain, {{100, 300, 0, 0, 0, 0, 0, 400}, {1, 2, 3, 4, 5, 6}, {0.1, 0, 0.1, 0, 0, 0, 0, 0}});
  EXPECT_NEAR(relevance[0][0], 1 + 4, 1e-9);
  EXPECT_NEAR(relevance[0][1], 3, 1e-9);
  EXPECT_NEAR(relevance[0][2], 4, 1e-9);
  EXPECT_NEAR(relevance[0][7], 4, 1e-9);
}

// By differences: the loss of one image with all filters of a unit a little larger.
TEST(UnitProbe, IsHowFarTheLossMovesWithTheUnit) {
  const AdaptedModel master = residual_model();
  const PlainMaster plain = plain_of(master);
  const Tensor images = small_images(3, 1);
  const auto before = test::bytes_of(*master.weights);
  const auto relevance = sensitivity_relevance(master, plain, images, 1);
  ASSERT_TRUE(relevance.ok()) << relevance.status().message();
  EXPECT_EQ(test::bytes_of(*master.weights), before);
  const StepOptions options{.batch = 1};
  const auto prepared = prepare_model(logits_of(master.graph), options);
  const test::Net step{*training_step(*prepared, std::vector<std::string>{"s1"}, options, Phase::kMeasure),
                       master.weights};
  const auto session = test::make_session(step, test::ref_backends(), {.optimize = false});
  const auto run = [&](int64_t label) {
    std::memcpy(session->input(0).raw(), images.raw(), session->input(0).bytes());
    session->input(1).data<int64_t>()[0] = label;
    EXPECT_TRUE(session->run().ok());
    return element_as_double(session->output(0), 0);
  };
  run(0);
  const auto logits = session->output(1).data<float>();
  const int64_t guess = std::max_element(logits.begin(), logits.end()) - logits.begin();
  for (const size_t unit : {1, 6}) {
    const auto moved = [&](float by) {
      for (const char* name : {"s1", "b1", "s3", "b3"}) {
        master.weights->writable(name)->data<float>()[unit] *= by;
        master.weights->mark_changed(std::vector<std::string>{name});
      }
      return run(guess);
    };
    const double above = moved(1.01f), below = moved(0.99f / 1.01f);
    moved(1 / 0.99f);
    const double slope = std::abs(above - below) / 0.02;
    EXPECT_NEAR((*relevance)[0][unit], slope, 0.02 * (0.1 + slope)) << unit;
  }
}

TEST(UnitProbe, WhatIsNoNumberIsAFailure) {
  const AdaptedModel master = gated_model();
  const PlainMaster plain = plain_of(master);
  Tensor images = small_images(4, 1);
  images.data<float>()[10] = NAN;
  EXPECT_FALSE(sensitivity_relevance(master, plain, images, 4).ok());
  EXPECT_FALSE(read_gates(master, plain, images).ok());
}

}  // namespace
}  // namespace limber::adapt
