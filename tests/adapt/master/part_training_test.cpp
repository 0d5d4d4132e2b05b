#include "adapt/master/part_training.h"

#include "adapt/master/judge_master.h"
#include "passes/slice_channels.h"
#include "tests/adapt/master/small_master.h"
#include "variant/elastic_model.h"

namespace limber::adapt {
namespace {

constexpr int64_t kBatch = 6;

Tensor some_targets() {
  Tensor targets = *Tensor::zeros({DType::kF32, {kBatch, 10}});
  for (int64_t i = 0; i < kBatch; ++i) targets.data<float>()[static_cast<size_t>(i * 10 + i)] = 1;
  return targets;
}

std::unique_ptr<PartTraining> part_training(const AdaptedModel& model, double sparsity = 0) {
  auto made = PartTraining::create(model, *open_master(model.graph), {.batch = kBatch, .sparsity = sparsity});
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *std::move(made);
}

TEST(PartTraining, TrainsTheKeptUnitsAndLeavesTheOthersToTheBit) {
  const AdaptedModel model = master_of(residual_model());
  const std::vector<float> before = [&] {
    const Tensor w = *model.weights->get("first");
    return std::vector<float>(w.data<float>().begin(), w.data<float>().end());
  }();
  const auto mean_before = test::bytes_of(*model.weights)["stem.mean"];
  const auto training = part_training(model);
  const std::vector<std::vector<int64_t>> kept = {{0, 5, 11}, {2, 7}};
  const auto loss = training->step(kept, residual_images(kBatch, 1), some_targets(), 0.01);
  ASSERT_TRUE(loss.ok()) << loss.status().message();
  const Tensor w = *model.weights->get("first");
  int moved = 0;
  for (size_t o = 0; o < 10; ++o) {
    for (size_t i = 0; i < 12; ++i) {
      const bool is_kept = (o == 2 || o == 7) && (i == 0 || i == 5 || i == 11);
      for (size_t k = 0; k < 9; ++k) {
        const size_t at = (o * 12 + i) * 9 + k;
        if (w.data<float>()[at] == before[at]) continue;
        EXPECT_TRUE(is_kept) << o << " " << i;
        ++moved;
      }
    }
  }
  EXPECT_GE(moved, 3 * 9) << "all of one unit at least: others may be dead";
  EXPECT_EQ(test::bytes_of(*model.weights)["stem.mean"], mean_before);
}

// A step that keeps everything is a step of the graph as it is, normalised as it answers; what parts do
// meanwhile is nothing that its optimiser knows of.
TEST(PartTraining, AStepOfAllUnitsIsAStepOfTheMaster) {
  const AdaptedModel model = master_of(residual_model());
  draw_gates(model, 3);
  AdaptedModel plain = model;
  plain.weights = std::make_shared<Parameters>(*model.weights->snapshot());
  const auto training = part_training(model);
  const std::vector<std::vector<int64_t>> all = all_units(open_master(model.graph)->groups);
  TrainingOptions how{.threads = 1};
  how.step = {.batch = kBatch,
              .loss = {.kind = LossKind::kCrossEntropy},
              .soft_targets = true,
              .optimizer = PartOptions().optimizer,
              .batch_norm = BatchNormMode::kFrozen};
  const auto expected = *TrainingSession::create(plain.graph, plain.weights, plain.backends, how);
  for (uint64_t i = 0; i < 3; ++i) {
    const Tensor images = residual_images(kBatch, i), targets = some_targets();
    std::memcpy(expected->images().raw(), images.raw(), images.bytes());
    std::memcpy(expected->targets().raw(), targets.raw(), targets.bytes());
    expected->set_rate(0.01);
    EXPECT_EQ(*expected->step(), *training->step(all, images, targets, 0.01));
  }
  const auto trained = test::bytes_of(*model.weights), as_expected = test::bytes_of(*plain.weights);
  EXPECT_EQ(trained.size(), parameters_of(model.graph).size()) << "no state of the optimiser";
  for (const auto& [name, bytes] : trained) EXPECT_TRUE(bytes == as_expected.at(name)) << name;
}

// The zeros that fill blocks of channels are not seen by what is kept.
TEST(PartTraining, AStepOfAPartIsAStepOfTheNetworkThatIsCut) {
  const AdaptedModel model = master_of(residual_model());
  draw_gates(model, 3);
  const Master master = *open_master(model.graph);
  const std::vector<std::vector<int64_t>> kept = {{0, 1, 3, 4, 5, 7, 8, 9, 11}, {2, 7, 9}};
  const AdaptedModel part = *cut(model, master.groups, kept);
  TrainingOptions how{.threads = 1};
  how.step = {.batch = kBatch,
              .loss = {.kind = LossKind::kCrossEntropy},
              .soft_targets = true,
              .optimizer = PartOptions().optimizer};
  const auto expected = *TrainingSession::create(part.graph, part.weights, part.backends, how);
  const auto training = part_training(model);
  for (uint64_t i = 0; i < 3; ++i) {
    const Tensor images = residual_images(kBatch, i), targets = some_targets();
    std::memcpy(expected->images().raw(), images.raw(), images.bytes());
    std::memcpy(expected->targets().raw(), targets.raw(), targets.bytes());
    expected->set_rate(0.01);
    const float alone = *expected->step();  // first, so that nothing it changes may be the master's
    EXPECT_NEAR(alone, *training->step(kept, images, targets, 0.01), 1e-4) << i;
  }
}

TEST(PartTraining, CutsOfOneSizeShareAPlan) {
  const AdaptedModel model = master_of(residual_model());
  const auto training = part_training(model);
  const Tensor images = residual_images(kBatch, 1), targets = some_targets();
  ASSERT_TRUE(training->step(std::vector<std::vector<int64_t>>{{0, 5}, {2, 7}}, images, targets, 0.01).ok());
  ASSERT_TRUE(training->step(std::vector<std::vector<int64_t>>{{1, 2}, {0, 9}}, images, targets, 0.01).ok());
  EXPECT_EQ(training->compiled(), 1u);
  ASSERT_TRUE(
      training
          ->step(std::vector<std::vector<int64_t>>{{1, 2, 3, 4, 5, 6, 7, 8, 9}, {9}}, images, targets, 0.01)
          .ok());
  EXPECT_EQ(training->compiled(), 2u);
}

TEST(PartTraining, SparsityIsAddedToTheLossAndShutsGates) {
  const AdaptedModel plain = master_of(residual_model()), sparse = master_of(residual_model());
  const auto without = part_training(plain), with = part_training(sparse, 2);
  const Tensor images = residual_images(kBatch, 1), targets = some_targets();
  const std::vector<std::vector<int64_t>> all = all_units(open_master(plain.graph)->groups);
  EXPECT_NEAR(*with->step(all, images, targets, 0.01) - *without->step(all, images, targets, 0.01), 2, 1e-4)
      << "open gates have a mean of 1";
  const auto sum = [](const AdaptedModel& model) {
    double total = 0;
    for (const float x : model.weights->get("gate/first/bias")->data<float>()) total += x;
    return total;
  };
  EXPECT_LT(sum(sparse), sum(plain));
}

}  // namespace
}  // namespace limber::adapt
