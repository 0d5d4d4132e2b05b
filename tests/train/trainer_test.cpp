#include "train/trainer.h"

#include <gtest/gtest.h>

#include "tests/train/training_case.h"

namespace limber::test {
namespace {

// Asks to stop after a number of updates.
class StopAfter : public TrainerHook {
 public:
  explicit StopAfter(int64_t step) : step_(step) {}
  Status on_step_end(TrainingSession& /*session*/, const StepReport& report) override {
    if (report.state.step == step_) stop = true;
    return {};
  }
  std::atomic<bool> stop{false};

 private:
  const int64_t step_;
};

Result<TrainingSummary> train(TrainerInputs inputs, const TrainerOptions& options) {
  LIMBER_ASSIGN(const auto trainer, Trainer::create(std::move(inputs), options));
  return trainer->run();
}

// Goes on from the last checkpoint of a run.
TrainerInputs resumed(RunFolder& folder) {
  std::vector<std::string> warnings;
  auto checkpoint = folder.load_last(warnings);
  EXPECT_TRUE(checkpoint.ok() && checkpoint->has_value());
  TrainerInputs inputs = tiny_inputs(&folder);
  inputs.graph = (*checkpoint)->graph;
  inputs.params = (*checkpoint)->params;
  inputs.state = (*checkpoint)->info.state;
  return inputs;
}

std::map<std::string, std::string> last_weights(RunFolder& folder) {
  std::vector<std::string> warnings;
  auto checkpoint = folder.load_last(warnings);
  EXPECT_TRUE(checkpoint.ok() && checkpoint->has_value());
  return bytes_of(*(*checkpoint)->params);
}

std::string read_history(const RunFolder& folder) { return *os_files().read(folder.history_path(), 1 << 20); }

// The numbers of a history that do not depend on the clock.
std::vector<std::string> epochs_in(const RunFolder& folder) {
  std::vector<std::string> lines;
  const auto records = read_records(folder.history_path());
  EXPECT_TRUE(records.ok() && records->damaged.empty());
  for (const RecordLine& line : records->lines) {
    if (!line.is<EpochRecord>()) continue;
    EpochRecord epoch = *line.as<EpochRecord>();
    epoch.seconds = 0;
    epoch.val_seconds = epoch.images_per_s = std::nullopt;
    lines.push_back(format_fields(epoch));
  }
  return lines;
}

TEST(Trainer, LearnsAndWritesHistoryAndCheckpoints) {
  const Folder folder;
  auto run = *RunFolder::open(folder / "run");
  TrainerOptions options = tiny_options(30);
  options.augmentation.flip = 0;
  const auto summary = train(tiny_inputs(run.get()), options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->ending, Ending::kFinished);
  ASSERT_EQ(summary->epochs.size(), 30U);
  EXPECT_LT(summary->epochs.back().loss, 0.85 * summary->epochs.front().loss);
  EXPECT_GE(summary->epochs.back().accuracy, 0.3) << "three times what guessing gives";
  EXPECT_EQ(summary->state.step, 150);
  const std::string history = read_history(*run);
  EXPECT_EQ(std::count(history.begin(), history.end(), '\n'), 31);
  for (const char* part :
       {"\"kind\":\"run.start\"", "\"lr\":\"0.1\"", "\"val_accuracy\":", "\"images_per_s\":", "\"rate\":"})
    EXPECT_NE(history.find(part), std::string::npos) << part;
  std::vector<std::string> warnings;
  const auto best = find_checkpoint(run->path(), Which::kBest, warnings);
  ASSERT_TRUE(best.ok());
  EXPECT_EQ(check_checkpoint(*best)->state.best_epoch, summary->state.best_epoch);
}

struct ResumeCase {
  const char* name;
  OptimizerKind optimizer;
  int micro_batches;
  double mixup;
};

class Resume : public testing::TestWithParam<ResumeCase> {};

TEST_P(Resume, EndsWhereATrainingLeftAloneEnds) {
  const Folder folder;
  TrainerOptions options = tiny_options(3);
  options.training.step.optimizer.kind = GetParam().optimizer;
  options.training.step.micro_batches = GetParam().micro_batches;
  options.mixup = GetParam().mixup;
  options.schedule.rate = 0.02;
  auto alone = *RunFolder::open(folder / "alone");
  ASSERT_TRUE(train(tiny_inputs(alone.get()), options).ok());
  const int64_t total = 3 * (5 / GetParam().micro_batches);
  for (int64_t stop = 1; stop < total; stop += 3) {
    auto run = *RunFolder::open(folder / ("run" + std::to_string(stop)));
    StopAfter hook(stop);
    TrainerInputs inputs = tiny_inputs(run.get());
    inputs.hooks = {&hook};
    inputs.stop = &hook.stop;
    const auto first = train(std::move(inputs), options);
    ASSERT_TRUE(first.ok()) << first.status().message();
    EXPECT_EQ(first->ending, Ending::kStopped);
    EXPECT_EQ(first->state.step, stop);
    const auto second = train(resumed(*run), options);
    ASSERT_TRUE(second.ok()) << second.status().message();
    EXPECT_EQ(second->ending, Ending::kFinished);
    EXPECT_EQ(last_weights(*run), last_weights(*alone)) << "stopped after step " << stop;
    EXPECT_EQ(epochs_in(*run), epochs_in(*alone)) << "stopped after step " << stop;
  }
}

INSTANTIATE_TEST_SUITE_P(Trainer, Resume,
                         testing::Values(ResumeCase{"sgd", OptimizerKind::kSgd, 1, 0},
                                         ResumeCase{"adam", OptimizerKind::kAdam, 1, 0.3},
                                         ResumeCase{"accumulate", OptimizerKind::kAdamW, 2, 0}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Trainer, ACheckpointInTheMiddleOfAnEpochIsEnough) {
  const Folder folder;
  TrainerOptions options = tiny_options(2);
  options.checkpoint_every = 2;
  auto alone = *RunFolder::open(folder / "alone");
  ASSERT_TRUE(train(tiny_inputs(alone.get()), options).ok());
  // A crash after the checkpoint of step 4, with history and checkpoints of later steps not yet there.
  class Crash : public TrainerHook {
    Status on_step_end(TrainingSession& /*session*/, const StepReport& report) override {
      return report.state.step == 5 ? invalid("crash") : Status();
    }
  } crash;
  auto run = *RunFolder::open(folder / "run");
  TrainerInputs inputs = tiny_inputs(run.get());
  inputs.hooks = {&crash};
  EXPECT_FALSE(train(std::move(inputs), options).ok());
  EXPECT_EQ(resumed(*run).state.step, 4);
  ASSERT_TRUE(train(resumed(*run), options).ok());
  EXPECT_EQ(last_weights(*run), last_weights(*alone));
  EXPECT_EQ(epochs_in(*run), epochs_in(*alone));
}

TEST(Trainer, PatienceEndsIt) {
  TrainerOptions options = tiny_options(50);
  options.schedule.rate = 1e-9;
  options.patience = 2;
  options.training.step.batch_norm = BatchNormMode::kFrozen;
  const auto summary = train(tiny_inputs(), options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->ending, Ending::kPatience);
  EXPECT_LT(summary->state.epoch, 50);
  EXPECT_GE(summary->state.epoch - 1 - summary->state.best_epoch, 2);
}

TEST(Trainer, DivergenceIsNamedAndEarlierCheckpointsStay) {
  const Folder folder;
  auto run = *RunFolder::open(folder / "run");
  ASSERT_TRUE(train(tiny_inputs(run.get()), tiny_options(1)).ok());
  TrainerOptions options = tiny_options(3);
  options.schedule.rate = 1e38;
  expect_failure(train(resumed(*run), options), Code::kInvalidArgument,
                 {"step ", "diverged", "learning rate (now ", "clip gradients", "step 5 is as it was"});
  EXPECT_EQ(resumed(*run).state.step, 5);
}

TEST(Trainer, AFullDiskStopsItAndKeepsWhatWasThere) {
  const Folder folder;
  FullDisk disk(size_t{1} << 30);
  auto run = *RunFolder::open(folder / "run", disk);
  ASSERT_TRUE(train(tiny_inputs(run.get()), tiny_options(1)).ok());
  disk.make_room(1000);
  expect_failure(train(resumed(*run), tiny_options(2)), Code::kIo, {"step 10", "No space left", "resume"});
  disk.make_room(size_t{1} << 30);
  EXPECT_EQ(resumed(*run).state.step, 5);
  EXPECT_TRUE(train(resumed(*run), tiny_options(2)).ok());
}

TEST(Trainer, BadImagesAreNamedOrCounted) {
  const Folder folder;
  for (int i = 0; i < 10; ++i) {
    folder.write_image(fmt::format("data/a/{}.png", i), static_cast<uint8_t>(20 * i), 16);
    folder.write_image(fmt::format("data/b/{}.png", i), static_cast<uint8_t>(255 - i), 16);
  }
  folder.write("data/a/5.jpg", "no picture");
  TrainerInputs inputs = tiny_inputs();
  inputs.data = *open_image_folder(folder / "data");
  inputs.validation = nullptr;
  TrainerOptions options = tiny_options(3);
  options.training.step.batch = 7;
  const auto failed = train(inputs, options);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.status().message().find("data/a/5.jpg"), std::string::npos) << failed.status().message();
  options.on_bad_image = OnBadImage::kSkip;
  const auto skipped = train(inputs, options);
  ASSERT_TRUE(skipped.ok()) << skipped.status().message();
  EXPECT_EQ(skipped->skipped, 1U);
  EXPECT_EQ(skipped->epochs.back().skipped, 1U);
}

TEST(Trainer, WhatCannotBeTrainedIsRefusedAtOnce) {
  TrainerInputs inputs = tiny_inputs();
  TrainerOptions options = tiny_options();
  options.training.step.batch = 41;
  expect_failure(Trainer::create(inputs, options), Code::kInvalidArgument, {"40 images", "a batch of 40"});
  options = tiny_options();
  options.input.height = 32;
  expect_failure(Trainer::create(inputs, options), Code::kInvalidArgument, {"another size"});
  options = tiny_options();
  options.train = {"fc.*", "nothing*"};
  expect_failure(Trainer::create(inputs, options), Code::kInvalidArgument, {"'nothing*'", "fc.w"});
  // Eleven classes for ten outputs.
  std::vector<int64_t> labels(40);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i % 11);
  const Tensor images = *Tensor::zeros({DType::kU8, Shape{40, 16, 16, 3}});
  inputs.data = *open_arrays(images, Tensor::from(std::span<const int64_t>(labels), Shape{40}), "photos");
  expect_failure(Trainer::create(inputs, tiny_options()), Code::kInvalidArgument,
                 {"photos", "number 10", "10 classes"});
}

TEST(Trainer, FrozenParametersStayAndHaveNoState) {
  TrainerInputs inputs = tiny_inputs();
  const auto params = inputs.params;
  const auto before = bytes_of(*params);
  TrainerOptions options = tiny_options(1);
  options.train = {"fc.*"};
  options.training.step.batch_norm = BatchNormMode::kFrozen;
  ASSERT_TRUE(train(std::move(inputs), options).ok());
  const auto after = bytes_of(*params);
  for (const auto& [name, bytes] : before)
    EXPECT_EQ(bytes == after.at(name), !name.starts_with("fc.")) << name;
  EXPECT_FALSE(after.contains("optimizer/velocity/conv.w"));
  EXPECT_TRUE(after.contains("optimizer/velocity/fc.w"));
}

TEST(Trainer, MicroBatchesAddUpToALargeBatch) {
  TrainerOptions options = tiny_options(2);
  options.training.step.batch_norm = BatchNormMode::kFrozen;
  TrainerInputs large = tiny_inputs(), small = tiny_inputs();
  options.training.step.batch = 20;
  ASSERT_TRUE(train(large, options).ok());
  options.training.step.batch = 5;
  options.training.step.micro_batches = 4;
  // Augmentation draws by position in the epoch, so the images are the same.
  ASSERT_TRUE(train(small, options).ok());
  const Tensor a = *large.params->get("fc.w"), b = *small.params->get("fc.w");
  for (size_t i = 0; i < 80; ++i) EXPECT_NEAR(a.data<float>()[i], b.data<float>()[i], 1e-4) << i;
}

}  // namespace
}  // namespace limber::test
