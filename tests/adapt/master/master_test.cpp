#include "adapt/master/master.h"

#include "adapt/master/judge_master.h"
#include "adapt/master/relevance.h"
#include "adapt/master/spread_gates.h"
#include "passes/slice_channels.h"
#include "tests/adapt/master/small_master.h"

namespace limber::adapt {
namespace {

float distance(const Tensor& a, const Tensor& b) {
  float most = 0;
  for (size_t i = 0; i < a.data<float>().size(); ++i)
    most = std::max(most, std::abs(a.data<float>()[i] - b.data<float>()[i]));
  return most;
}

TEST(Master, OpenGatesChangeNoBit) {
  const AdaptedModel original = residual_model(), model = master_of(original);
  const Tensor images = residual_images(5, 1);
  // Without the inference passes, which may add in another order.
  const auto run = [&](const AdaptedModel& one) {
    CompileSettings how = batch_settings(one.graph, 5, 1);
    how.optimize = false;
    auto session = *Session::create(*compile(one.graph, one.weights, one.backends, how));
    std::memcpy(session->input(0).raw(), images.raw(), images.bytes());
    EXPECT_TRUE(session->run().ok());
    const auto values = session->output(0).data<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  EXPECT_EQ(run(original), run(model));
}

TEST(Master, IsFoundAgainInItsGraph) {
  const AdaptedModel model = master_of(residual_model());
  const auto master = open_master(*parse(print(model.graph)));
  ASSERT_TRUE(master.ok()) << master.status().message();
  ASSERT_EQ(master->gates.size(), 3u);
  EXPECT_EQ(master->gates[0].layer, "stem");
  ASSERT_EQ(master->groups.groups.size(), 2u);
  EXPECT_EQ(master->groups.groups[0].units, 12);
  EXPECT_EQ(master->spans[0].size(), 2u) << "stem and second are one stream";
  EXPECT_EQ(master->groups.groups[1].units, 10);
  EXPECT_EQ(master->spans[1].size(), 1u);
}

TEST(Master, RefusesWhatIsNone) {
  const AdaptedModel original = residual_model();
  const auto none = open_master(original.graph);
  EXPECT_EQ(none.status().code(), Code::kInvalidArgument);
  EXPECT_NE(none.status().message().find("elastify --gates"), std::string::npos) << none.status().message();
  const AdaptedModel model = master_of(original);
  Parameters weights(*model.weights->snapshot());
  const auto twice = make_master(model.graph, weights);
  EXPECT_EQ(twice.status().code(), Code::kInvalidArgument);
  EXPECT_NE(twice.status().message().find("already"), std::string::npos) << twice.status().message();
}

// What is left of a master is what the whole master computes with the other units' gates shut.
TEST(Master, DroppedUnitsAreUnitsWithGatesOfZero) {
  const AdaptedModel model = master_of(residual_model());
  draw_gates(model, 3);
  const Master master = *open_master(model.graph);
  const std::vector<std::vector<int64_t>> kept = {{0, 3, 4, 9}, {1, 2, 8}};
  const AdaptedModel part = *cut(model, master.groups, kept);
  EXPECT_EQ(part.graph.type(*part.graph.find("stem")).shape.dim(0), 4);
  for (size_t g = 0; g < kept.size(); ++g) {
    for (const GatedSpan& span : master.spans[g]) {
      const FilterGate& gate = master.gates[span.gate];
      Tensor weight = *model.weights->writable(gate.weight), bias = *model.weights->writable(gate.bias);
      for (int64_t unit = 0; unit < master.groups.groups[g].units; ++unit) {
        if (std::binary_search(kept[g].begin(), kept[g].end(), unit)) continue;
        for (const int64_t filter : span.of(unit)) {
          bias.data<float>()[static_cast<size_t>(filter)] = 0;
          for (int64_t row = 0; row < weight.shape().dim(0); ++row)
            weight.data<float>()[static_cast<size_t>(row * weight.shape().dim(1) + filter)] = 0;
        }
      }
      model.weights->mark_changed(std::vector{gate.weight, gate.bias});
    }
  }
  const Tensor images = residual_images(4, 5);
  EXPECT_LT(distance(answers_of(model, images), answers_of(part, images)), 1e-5f);
}

TEST(Master, SpreadGatesKeepWhatIsComputedAndOrderUnits) {
  const AdaptedModel original = residual_model(), model = master_of(original);
  const Master master = *open_master(model.graph);
  ASSERT_TRUE(spread_gates(master, *model.weights).ok());
  const Tensor images = residual_images(4, 5);
  EXPECT_LT(distance(answers_of(original, images), answers_of(model, images)), 1e-4f);
  const auto bias = (*model.weights->get("gate/first/bias")).data<float>();
  EXPECT_GT(*std::max_element(bias.begin(), bias.end()), *std::min_element(bias.begin(), bias.end()));
}

// By hand: the mean of the gates of a unit's filters.
TEST(Relevance, IsTheMeanOfTheGatesOfAUnit) {
  const AdaptedModel model = master_of(residual_model());
  draw_gates(model, 7);
  const auto reader = *MasterReader::create(model);
  const Tensor images = residual_images(3, 2);
  const auto reading = reader->read(images);
  ASSERT_TRUE(reading.ok()) << reading.status().message();
  ASSERT_EQ(reading->relevance.size(), 3u);
  AdaptedModel gates = model;
  gates.graph.mutable_outputs().clear();
  const std::vector<FilterGate> found = find_gates(gates.graph);
  for (const FilterGate& gate : found) gates.graph.add_output(gate.value, gate.layer);
  auto session = *Session::create(
      *compile(gates.graph, gates.weights, gates.backends, batch_settings(gates.graph, 3, 1)));
  std::memcpy(session->input(0).raw(), images.raw(), images.bytes());
  ASSERT_TRUE(session->run().ok());
  const auto stem = session->output(0).data<float>(), second = session->output(2).data<float>();
  for (size_t image = 0; image < 3; ++image) {
    for (size_t unit = 0; unit < 12; ++unit) {
      const size_t at = image * 12 + unit;
      EXPECT_NEAR(reading->relevance[image][0][unit], (stem[at] + second[at]) / 2.0, 1e-5);
    }
    EXPECT_EQ(reading->logits[image].size(), 10u);
  }
}

TEST(Relevance, AnyShareKeepsAtLeastOneOfEachGroup) {
  const UnitRelevance relevance = {{0.1, 0.9, 0.5, 0.5}, {2, 1}};
  using Units = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(most_relevant(relevance, 1), (Units{{0, 1, 2, 3}, {0, 1}}));
  EXPECT_EQ(most_relevant(relevance, 0.5), (Units{{1, 2}, {0}}));
  EXPECT_EQ(most_relevant(relevance, 0), (Units{{1}, {0}}));
  const UnitRelevance other = {{0.3, 0.1, 0.5, 0.5}, {0, 3}};
  EXPECT_EQ(mean_relevance({relevance, other}), (UnitRelevance{{0.2, 0.5, 0.5, 0.5}, {1, 2}}));
}

TEST(Relevance, RefusesImagesThatHoldNoNumbers) {
  const AdaptedModel model = master_of(residual_model());
  const auto reader = *MasterReader::create(model);
  Tensor images = residual_images(2, 2);
  images.data<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  draw_gates(model, 7);
  const auto reading = reader->read(images);
  EXPECT_EQ(reading.status().code(), Code::kInternal) << reading.status().message();
}

}  // namespace
}  // namespace limber::adapt
