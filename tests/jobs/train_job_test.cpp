#include "jobs/train_job.h"

#include <filesystem>

#include "jobs/train_hooks.h"
#include "tests/jobs/tiny.h"

namespace limber {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::Listener;
using test::tiny_training;

TEST(TrainJob, TrainsAndTellsWhereItStands) {
  const Folder folder;
  Listener listener;
  const auto result = run_train(tiny_training(folder), listener.control());
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->summary.ending, Ending::kFinished);
  EXPECT_EQ(result->summary.state.step, 5);
  EXPECT_EQ(result->images, 40);
  EXPECT_EQ(result->validation_images, 20);
  EXPECT_EQ(result->validated_on, ValidatedOn::kGiven);
  EXPECT_EQ(listener.stage, "training");
  ASSERT_FALSE(listener.shares.empty());
  EXPECT_TRUE(std::is_sorted(listener.shares.begin(), listener.shares.end()));
  EXPECT_EQ(listener.shares.back(), 1);
  EXPECT_TRUE(is_run(folder / "run"));
}

TEST(TrainJob, DefaultsDependOnTheOptimiser) {
  const Folder folder;
  const std::map<OptimizerKind, std::pair<std::string, std::string>> expected = {
      {OptimizerKind::kSgd, {"0.01", "0.0005"}},
      {OptimizerKind::kAdam, {"0.001", "0"}},
      {OptimizerKind::kAdamW, {"0.001", "0.01"}}};
  for (const auto& [kind, texts] : expected) {
    TrainJobOptions options = tiny_training(folder, std::string(optimizer_name(kind)));
    options.trainer.training.step.optimizer.kind = kind;
    ASSERT_TRUE(run_train(options).ok());
    std::vector<std::string> warnings;
    const auto info = check_checkpoint(*find_checkpoint(options.output, Which::kLast, warnings));
    EXPECT_EQ(info->options.at("lr"), texts.first);
    EXPECT_EQ(info->options.at("weight-decay"), texts.second);
    EXPECT_EQ(info->options.at("schedule"), "cosine");
    EXPECT_EQ(info->options.at("strategy"), "full");
  }
}

TEST(TrainJob, StopsWithACheckpointAndGoesOn) {
  const Folder folder;
  TrainJobOptions options = tiny_training(folder);
  options.trainer.epochs = 3;
  const auto whole = run_train([&] {
    TrainJobOptions other = options;
    other.output = folder / "whole";
    return other;
  }());
  Listener listener;
  listener.stop_after = 6;
  const auto stopped = run_train(options, listener.control());
  ASSERT_TRUE(stopped.ok()) << stopped.status().message();
  EXPECT_EQ(stopped->summary.ending, Ending::kStopped);
  EXPECT_LT(stopped->summary.state.step, 15);
  expect_failure(run_train(options), Code::kInvalidArgument, {"holds a training already"});
  options.resume = true;
  const auto rest = run_train(options);
  ASSERT_TRUE(rest.ok()) << rest.status().message();
  EXPECT_EQ(rest->summary.state.step, 15);
  EXPECT_EQ(rest->summary.state.best_loss, whole->summary.state.best_loss);
}

TEST(TrainJob, ResumingRefusesAnotherModelSizeRateOrData) {
  const Folder folder;
  TrainJobOptions options = tiny_training(folder);
  ASSERT_TRUE(run_train(options).ok());
  options.resume = true;
  options.trainer.epochs = 2;
  TrainJobOptions other = options;
  other.model = test::write_tiny(folder, "other.onnx", 2);  // the same structure with other weights
  expect_failure(run_train(other), Code::kInvalidArgument, {"other.onnx", "not the model"});
  other = options;
  other.model = test::write_tiny(folder, "relu.onnx", 1, [text = std::string(test::kTinyNet)]() mutable {
    return text.replace(text.find("Relu("), 5, "Abs(");
  }());
  expect_failure(run_train(other), Code::kInvalidArgument, {"relu.onnx", "not the model"});
  other = options;
  other.image.size = {24};
  other.image.crop = 16;
  expect_failure(run_train(other), Code::kInvalidArgument, {"images are prepared as", "24"});
  other = options;
  other.rate = 0.5;
  expect_failure(run_train(other), Code::kInvalidArgument, {"lr is '0.5'", "begun with '0.01'"});
  other = options;
  other.data = "synthetic:size=16,count=48";
  expect_failure(run_train(other), Code::kInvalidArgument, {"48 images", "40"});
  EXPECT_TRUE(run_train(options).ok());  // a copy of the same model elsewhere is the same model
}

TEST(TrainJob, HoldsImagesOutWhereThereIsNoTestPart) {
  const Folder folder;
  TrainJobOptions options = tiny_training(folder);
  options.data = test::write_classes(folder, {"a", "b", "c"}, 10);
  options.validation = "";
  options.validation_share = 0.2;
  Listener listener;
  const auto result = run_train(options, listener.control());
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->validated_on, ValidatedOn::kHeldOut);
  EXPECT_EQ(result->images, 24);
  EXPECT_EQ(result->validation_images, 6);
  EXPECT_TRUE(contains(listener.notes, "6 of its 30 images, some of each class, are held out"))
      << listener.notes;
  EXPECT_TRUE(contains(listener.notes, "a new classifier for 3 classes")) << listener.notes;
  options.resume = true;
  options.trainer.epochs = 2;
  EXPECT_TRUE(run_train(options).ok());
  options.validation_share = 0.3;
  expect_failure(run_train(options), Code::kInvalidArgument, {"images"});
  options.validation_share = 0.2;
  options.seed = 1;
  expect_failure(run_train(options), Code::kInvalidArgument, {"seed"});
  TrainJobOptions none = options;
  none.output = folder / "none";
  none.resume = false;
  none.validate = false;
  EXPECT_EQ(run_train(none)->validated_on, ValidatedOn::kNothing);
}

TEST(TrainJob, RefusesWhatCannotWork) {
  const Folder folder;
  const double nan = std::nan("");
  const auto expect = [&](const std::function<void(TrainJobOptions&)>& change, const std::string& part) {
    TrainJobOptions options = tiny_training(folder);
    change(options);
    expect_failure(run_train(options), Code::kInvalidArgument, {part});
    EXPECT_FALSE(fs::exists(folder / "run")) << part;
  };
  expect([](auto& o) { o.rho = o.speedup = 2; }, "not both");
  expect([](auto& o) { o.rho = 0.5, o.strategy = Strategy::kLastLayer; }, "elastic");
  expect([](auto& o) { o.elastic.always = {"fc.*"}; }, "always-train");
  expect([](auto& o) { o.speedup = 0.5; }, "speedup is 0.5");
  expect([](auto& o) { o.speedup = 2, o.time = 60; }, "time or speedup, not both");
  expect([](auto& o) { o.speedup = 2, o.strategy = Strategy::kLastLayer; }, "which 'last' never does");
  expect([](auto& o) { o.speedup = 2, o.strategy = Strategy::kPrune; }, "which 'prune' never does");
  expect([&](auto& o) { o.time = nan; }, "time is nan");
  expect([](auto& o) { o.time = 60, o.trainer.patience = 3; }, "patience");
  expect([&](auto& o) { o.rate = nan; }, "lr is nan");
  expect([&](auto& o) { o.rho = nan; }, "rho is nan");
  expect([&](auto& o) { o.trainer.training.step.optimizer.clip_norm = nan; }, "clip-norm is nan");
  expect([&](auto& o) { o.trainer.warm_up_epochs = nan; }, "warmup is nan");
  expect([](auto& o) { o.trainer.epochs = 0; }, "epochs is 0");
  expect([](auto& o) { o.trainer.evaluate_every = 0; }, "eval-every is 0");
  expect([](auto& o) { o.trainer.training.step.micro_batches = 0; }, "accumulate is 0");
  expect([](auto& o) { o.batch = -8; }, "batch is -8");
  expect([](auto& o) { o.batch = 64; }, "40 images");
  expect([](auto& o) { o.trainer.train = {"nothing*"}; }, "matches no parameter");
  expect([](auto& o) { o.trainer.freeze = {"*"}; }, "freeze");
  expect([](auto& o) { o.image.size = {8}, o.image.crop = 16; }, "a crop of 16x16 pixels is larger");
}

TEST(TrainJob, WritesOnlyWhereItMay) {
  const Folder folder;
  TrainJobOptions options = tiny_training(folder);
  options.output = test::write_classes(folder, {"cat", "dog"});
  expect_failure(run_train(options), Code::kInvalidArgument, {"no training", "not empty"});
  EXPECT_FALSE(fs::exists(options.output + "/checkpoints"));
  options.output = folder / "no/such/parent";
  expect_failure(run_train(options), Code::kNotFound, {"no/such"});
  EXPECT_FALSE(fs::exists(folder / "no"));
  options.output = folder.write("file", "");
  expect_failure(run_train(options), Code::kInvalidArgument, {"is a file"});
  folder.make("empty");
  options.output = (folder / "empty") + "/";
  EXPECT_TRUE(run_train(options).ok());
}

TEST(TrainJob, WhatFailsBeforeACheckpointLeavesNothing) {
  const Folder folder;
  TrainJobOptions options = tiny_training(folder);
  options.data = folder.write("list.csv", "path,label\nno.png,a\nno.png,b\nno.png,a\nno.png,b\n");
  options.validate = false;
  options.batch = 2;
  EXPECT_FALSE(run_train(options).ok());
  EXPECT_FALSE(fs::exists(options.output));
  folder.make("mine");
  options.output = folder / "mine";
  EXPECT_FALSE(run_train(options).ok());
  EXPECT_TRUE(fs::is_empty(options.output));
}

TEST(TrainJob, TrainsElasticallyWithinAShare) {
  const Folder folder;
  TrainJobOptions options = tiny_training(folder);
  options.rho = 0.5;
  options.trainer.epochs = 30;
  options.elastic.interval_steps = 12;
  Listener listener;
  const auto result = run_train(options, listener.control());
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(contains(listener.notes, "tensors")) << listener.notes;
  std::vector<std::string> warnings;
  const auto info = check_checkpoint(*find_checkpoint(options.output, Which::kLast, warnings));
  EXPECT_EQ(info->options.at("strategy"), "elastic");
  EXPECT_EQ(info->options.at("rho"), "0.5");
}

// The time is kept, and what is trained in it is chosen without a share.
TEST(TrainJob, TrainsWithinATime) {
  const Folder folder;
  TrainJobOptions options = tiny_training(folder);
  options.time = 4;
  Listener listener;
  const auto result = run_train(options, listener.control());
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->summary.ending, Ending::kFinished);
  EXPECT_GT(result->summary.state.step, 5);  // the epoch that options name
  EXPECT_EQ(result->time_limit_s, 4);
  EXPECT_GT(result->seconds, 2);
  EXPECT_TRUE(contains(listener.notes, "times")) << listener.notes;  // why it trains what it trains
  EXPECT_TRUE(std::is_sorted(listener.shares.begin(), listener.shares.end()));
  std::vector<std::string> warnings;
  const auto info = check_checkpoint(*find_checkpoint(options.output, Which::kLast, warnings));
  EXPECT_EQ(info->options.at("time"), "4");
  EXPECT_EQ(info->options.at("strategy"), "elastic");
  EXPECT_EQ(info->options.count("rho"), 0U);
}

TEST(TrainJob, ASpeedUpIsOfTheTimeOfTrainingEverything) {
  const Folder folder;
  for (const Strategy strategy : {Strategy::kAuto, Strategy::kFull, Strategy::kFreeze}) {
    TrainJobOptions options = tiny_training(folder, std::string(strategy_name(strategy)));
    options.speedup = 2;
    options.strategy = strategy;
    options.trainer.epochs = 60;
    Listener listener;
    const auto result = run_train(options, listener.control());
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_NEAR(result->time_limit_s, result->full_s / 2, 1e-9);
    EXPECT_GT(result->full_s, 0);
    EXPECT_TRUE(contains(listener.notes, "1/2 of the time")) << listener.notes;
  }
}

TEST(Shortfall, IsOnlyToldWhereTheShareIsMissed) {
  EXPECT_EQ(shortfall({.share = 0.3, .within = true}, 0.5), "");
  // Beyond the budget of its interval, but not beyond what was asked for.
  EXPECT_EQ(shortfall({.share = 0.32, .within = false}, 0.5), "");
  EXPECT_TRUE(contains(shortfall({.share = 0.62, .within = false}, 0.5), "takes 62 %"));
}

// As ConvNeXt has it when exported with an operator set before 17.
TEST(TrainJob, ANormalisationThatIsSpelledOutIsOne) {
  const auto deep = [](bool norm) {
    std::string text = "graph \"deep\" {\n  input %x0: f32[N,3,16,16]\n";
    for (int i = 0; i < 10; ++i) text += fmt::format("  param %w{}: f32[3,3,1,1]\n", i);
    text += "  param %e: f32[1]\n  param %fc: f32[10,3]\n";
    for (int i = 0; i < 10; ++i)
      text += fmt::format(
          "  %x{}: f32[N,3,16,16] = Conv(%x{}, %w{}) {{dilations=[1,1], pads=[0,0,0,0], strides=[1,1]}}\n",
          i + 1, i, i);
    if (norm) {
      text +=
          "  %q: f32[N,3,16,16] = Mul(%x10, %x10)\n"
          "  %m: f32[N,1,16,16] = ReduceMean(%q) {axes=[1], keepdims=1}\n"
          "  %a: f32[N,1,16,16] = Add(%m, %e)\n"
          "  %s: f32[N,1,16,16] = Sqrt(%a)\n"
          "  %y: f32[N,3,16,16] = Div(%x10, %s)\n";
    } else {
      text += "  %y: f32[N,3,16,16] = Relu(%x10)\n";
    }
    return text +
           "  %p: f32[N,3,1,1] = GlobalAveragePool(%y)\n  %f: f32[N,3] = Reshape(%p) {shape=<N,3>}\n"
           "  %z: f32[N,10] = Gemm(%f, %fc) {trans_b=1}\n  output %z as \"z\"\n}\n";
  };
  for (const bool norm : {false, true}) {
    const Folder folder;
    TrainJobOptions options = tiny_training(folder);
    options.model = test::write_tiny(folder, "deep.onnx", 1, deep(norm));
    Listener listener;
    static_cast<void>(run_train(options, listener.control()));
    EXPECT_EQ(contains(listener.notes, "no normalisation"), !norm) << listener.notes;
  }
}

// A tensor that is scale and running variance at once is trained, and not overwritten by a variance.
TEST(TrainJob, StatisticsThatAreSharedStayAsTheyAre) {
  const Folder folder;
  TrainJobOptions options = tiny_training(folder);
  options.model = test::write_tiny(folder, "shared.onnx", 1, R"(graph "shared" {
    input %x: f32[N,3,16,16]
    param %s: f32[3]
    param %b: f32[3]
    param %m: f32[3]
    param %fc: f32[10,3]
    %n: f32[N,3,16,16] = BatchNorm(%x, %s, %b, %m, %s) {epsilon=1e-05}
    %p: f32[N,3,1,1] = GlobalAveragePool(%n)
    %f: f32[N,3] = Reshape(%p) {shape=<N,3>}
    %z: f32[N,10] = Gemm(%f, %fc) {trans_b=1}
    output %z as "z"
  })");
  const auto trained = run_train(options);
  EXPECT_TRUE(trained.ok()) << trained.status().message().substr(0, 200);
}

// Exporters fix the number of images unless they are told not to.
TEST(TrainJob, WhatItMakesTakesAnyNumberOfImages) {
  const Folder folder;
  TrainJobOptions options = tiny_training(folder);
  options.model = test::write_tiny(folder, "one.onnx", 1, R"(graph "one" {
    input %x: f32[1,3,16,16]
    param %fc: f32[10,3]
    %f: f32[1,3] = ReduceMean(%x) {axes=[2,3], keepdims=0}
    %z: f32[1,10] = Gemm(%f, %fc) {trans_b=1}
    output %z as "z"
  })");
  const auto trained = run_train(options);
  ASSERT_TRUE(trained.ok()) << trained.status().message();
  ModelSource source;
  source.model = options.output;
  const auto made = load(source);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->graph.type(made->graph.inputs()[0]).to_string(), "f32[N,3,16,16]");
  options.resume = true;
  options.trainer.epochs = 2;
  EXPECT_TRUE(run_train(options).ok());
}

TEST(TrainJob, SaysWhenItWasOverBeforeAChoice) {
  const Folder folder;
  TrainJobOptions options = tiny_training(folder);
  options.rho = 0.5;
  options.trainer.epochs = 1;
  Listener listener;
  ASSERT_TRUE(run_train(options, listener.control()).ok());
  EXPECT_TRUE(contains(listener.notes, "rho 0.5 has saved no time")) << listener.notes;
}

}  // namespace
}  // namespace limber
