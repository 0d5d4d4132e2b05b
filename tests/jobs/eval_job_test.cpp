#include "jobs/eval_job.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "io/model_card.h"
#include "jobs/eval_page.h"
#include "jobs/export_job.h"
#include "jobs/scores.h"
#include "tests/jobs/tiny.h"

namespace limber {
namespace {

using test::contains;

EvalJobOptions tiny_evaluation(const std::string& model, const std::string& data) {
  EvalJobOptions options;
  options.model = model;
  options.data = data;
  options.threads = 1;
  options.workers = 0;
  return options;
}

TEST(EvalJob, CountsEveryImageOnce) {
  const Folder folder;
  test::Listener listener;
  const auto result =
      run_eval(tiny_evaluation(test::write_tiny(folder), "synthetic:size=16,count=200"), listener.control());
  ASSERT_TRUE(result.ok()) << result.status().message();
  const Classification& c = (*result)->classes;
  int64_t images = 0, right = 0, pairs = 0, binned = 0;
  for (const ClassCount& one : c.classes) images += one.images, right += one.right;
  for (const Confusion& pair : c.confusions) pairs += pair.images;
  for (const ConfidenceBin& bin : c.bins) binned += bin.images;
  EXPECT_EQ(images, 200);
  EXPECT_EQ(pairs, 200);
  EXPECT_EQ(binned, 200);
  EXPECT_DOUBLE_EQ(static_cast<double>(right) / 200, (*result)->evaluation.top1);
  ASSERT_EQ(c.worst.size(), 20U);
  for (size_t i = 1; i < c.worst.size(); ++i) EXPECT_GE(c.worst[i - 1].confidence, c.worst[i].confidence);
  EXPECT_NE(c.worst[0].label, c.worst[0].claimed);
  EXPECT_FALSE(c.worst[0].name.empty());
  EXPECT_EQ(listener.stage, "evaluating");
}

TEST(EvalJob, BecomesAPageWithPictures) {
  const Folder folder;
  const EvalJobOptions options = tiny_evaluation(test::write_tiny(folder), "synthetic:size=16,count=100");
  const auto result = run_eval(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const EvaluationRecord record = record_of(options, **result);
  EXPECT_EQ(record.problem(), "");
  EXPECT_EQ(record.images, 100);
  EXPECT_EQ(record.correct(), std::llround(100 * (*result)->evaluation.top1));
  EXPECT_NEAR(record.calibration_error(), (*result)->classes.calibration_error(), 1e-9);
  const std::string path = folder / "new/page.html";
  ASSERT_TRUE(write_eval_page(options, **result, path).ok());
  const std::string page = *os_files().read(path, 1 << 24);
  EXPECT_TRUE(contains(page, "of 100 test images"));
  size_t pictures = 0;
  for (size_t at = 0; (at = page.find("data:image/png;base64,iVBOR", at)) != std::string::npos; ++at)
    ++pictures;
  EXPECT_EQ(pictures, record.worst.size());
}

TEST(EvalJob, NothingWhenStopped) {
  const Folder folder;
  test::Listener listener;
  listener.stop = true;
  const auto result =
      run_eval(tiny_evaluation(test::write_tiny(folder), "synthetic:size=16,count=20"), listener.control());
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->has_value());
}

TEST(EvalJob, ClassesMustBeTheModels) {
  const Folder folder;
  const std::string model = test::write_tiny(folder);
  const std::string images = test::write_classes(folder, {"cat", "dog", "emu"});
  expect_failure(run_eval(tiny_evaluation(model, images)), Code::kInvalidArgument,
                 {"10 classes", "3 (cat, dog, emu)", "labels"});
  EvalJobOptions named = tiny_evaluation(model, images);
  named.classes = {"ant", "bee", "emu", "cat", "eel", "dog", "fly", "gnu", "hen", "jay"};
  const auto result = run_eval(named);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ((*result)->classes.classes[2].images, 2);
  EXPECT_EQ((*result)->classes.classes[3].images, 2);
  EXPECT_EQ((*result)->classes.classes[0].images, 0);
}

TEST(EvalJob, ClassesNamedByNumberAreTheModels) {
  const Folder folder;
  const auto result =
      run_eval(tiny_evaluation(test::write_tiny(folder), test::write_classes(folder, {"0", "1", "2"})));
  EXPECT_TRUE(result.ok()) << result.status().message();
}

// Fed 0..1 it calls every image bright; centred about a mean, it tells dark from bright.
TEST(EvalJob, DoubtsPixelsThatTheNetworkCannotTellApart) {
  const Folder folder;
  test::Net net = test::make_net(R"(graph "grey" {
    input %x: f32[N,3,16,16]
    param %w: f32[2,3]
    %p: f32[N,3,1,1] = GlobalAveragePool(%x)
    %f: f32[N,3] = Reshape(%p) {shape=<N,3>}
    %y: f32[N,2] = Gemm(%f, %w) {trans_b=1}
    output %y as "y"
  })");
  Tensor weights = *net.params->writable("w");
  std::ranges::copy(std::vector<float>{4, 4, 4, -4, -4, -4}, weights.data<float>().begin());
  ASSERT_TRUE(export_onnx(net.graph, *net.params, folder / "grey.onnx").ok());
  for (int i = 0; i < 16; ++i) {
    folder.write_image(fmt::format("images/bright/{}.png", i), static_cast<uint8_t>(200 + i), 16);
    folder.write_image(fmt::format("images/dark/{}.png", i), static_cast<uint8_t>(20 + i), 16);
  }
  EvalJobOptions options = tiny_evaluation(folder / "grey.onnx", folder / "images");
  test::Listener doubtful;
  const auto blind = run_eval(options, doubtful.control());
  ASSERT_TRUE(blind.ok()) << blind.status().message();
  EXPECT_EQ((*blind)->evaluation.top1, 0.5);
  EXPECT_TRUE(contains(doubtful.notes, "fed other pixels than it was trained with")) << doubtful.notes;
  options.image.preset = *find_preset("imagenet");
  test::Listener sure;
  EXPECT_EQ((*run_eval(options, sure.control()))->evaluation.top1, 1);
  EXPECT_EQ(sure.notes, "");
}

TEST(EvalJob, OutputsThatAreNoNumbersFail) {
  const Folder folder;
  test::Net net = test::make_net(test::kTinyNet);
  Tensor bias = *net.params->writable("fc.b");
  bias.data<float>()[3] = std::nanf("");
  ASSERT_TRUE(export_onnx(net.graph, *net.params, folder / "nan.onnx").ok());
  expect_failure(run_eval(tiny_evaluation(folder / "nan.onnx", "synthetic:size=16,count=20")),
                 Code::kInvalidArgument, {"not numbers (NaN) for 20 of 20 images"});
  RunJobOptions options;
  options.model = folder / "nan.onnx";
  options.inputs = {"builtin:image"};
  auto job = RunJob::open(options);
  ASSERT_TRUE(job.ok() && job->assign().ok());
  const auto run = job->run();
  ASSERT_TRUE(run.ok()) << run.status().message();
  const Status status = check_numbers(run->outputs);
  EXPECT_TRUE(contains(status.message(), "'logits': 1 of 10 values")) << status.message();
}

TEST(EvalJob, ATrainingSaysHowImagesArePreparedAndWhatClassesAreCalled) {
  const Folder folder;
  TrainJobOptions training = test::tiny_training(folder);
  training.image.preset = *find_preset("imagenet");
  const auto trained = run_train(training);
  ASSERT_TRUE(trained.ok()) << trained.status().message();
  const auto result = run_eval(tiny_evaluation(training.output, training.validation));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ((*result)->evaluation.loss, trained->summary.state.best_loss);
  RunJobOptions run;
  run.model = training.output;
  const auto job = RunJob::open(run);
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->classes(), (*result)->classes.names);
}

TEST(Calibration, IsTheDistanceOfConfidenceFromAccuracy) {
  ClassificationSums sums({"a", "b"}, 2, 5);
  const float sure = std::log(0.8F / 0.2F);  // softmax 0.8
  for (uint32_t i = 0; i < 10; ++i) sums.add(i, i < 5 ? 0 : 1, std::vector<float>{sure, 0});
  const Classification c = std::move(sums).take();
  EXPECT_NEAR(c.calibration_error(), 0.3, 1e-6);  // says 80 %, is right in half
  EXPECT_EQ(c.worst.size(), 5U);
  EXPECT_EQ(c.worst[0].sample, 5U);
  EXPECT_EQ(c.most_confused(3).size(), 1U);
  EXPECT_EQ(c.classes[0].claimed, 10);
  EXPECT_DOUBLE_EQ(c.classes[0].precision(), 0.5);
}

TEST(ExportJob, NeverOverwritesWhatItReads) {
  const Folder folder;
  const std::string model = test::write_tiny(folder);
  const auto before = *os_files().read(model, 1 << 20);
  ExportJobOptions options;
  options.model = model;
  options.fold = true;
  for (const std::string& same : {model, folder / "./tiny.onnx"}) {
    options.output = same;
    expect_failure(run_export(options), Code::kInvalidArgument, {"what is read"});
  }
  std::filesystem::create_symlink(model, folder / "link.onnx");
  options.output = folder / "link.onnx";
  expect_failure(run_export(options), Code::kInvalidArgument, {"what is read"});
  EXPECT_EQ(*os_files().read(model, 1 << 20), before);
  folder.write("checkpoint/manifest.json", "{}");
  options.output = folder / "checkpoint/model.onnx";
  expect_failure(run_export(options), Code::kInvalidArgument, {"checkpoint"});
  options.output = folder / "no/such/x.onnx";
  expect_failure(run_export(options), Code::kNotFound, {"no/such"});
  EXPECT_FALSE(std::filesystem::exists(folder / "no"));
  options.output = folder / "folded.onnx";
  const auto result = run_export(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_LT(result->nodes, result->nodes_before);
}

TEST(ExportJob, WhatWasExportedKnowsItsClassesAndImages) {
  const Folder folder;
  TrainJobOptions training = test::tiny_training(folder);
  training.image.preset = *find_preset("imagenet");
  ASSERT_TRUE(run_train(training).ok());
  ExportJobOptions options;
  options.model = training.output;
  options.output = folder / "x.onnx";
  ASSERT_TRUE(run_export(options).ok());
  const auto of_run = run_eval(tiny_evaluation(training.output, training.validation));
  const auto of_file = run_eval(tiny_evaluation(folder / "x.onnx", training.validation));
  ASSERT_TRUE(of_run.ok() && of_file.ok()) << of_file.status().message();
  EXPECT_EQ((*of_file)->evaluation.loss, (*of_run)->evaluation.loss);
  options.model = options.output;  // once more, from the file
  options.output = folder / "y.onnx";
  ASSERT_TRUE(run_export(options).ok());
  EXPECT_EQ((*read_card(folder / "y.onnx"))->classes, (*of_run)->classes.names);
}

TEST(ExportJob, VariantsAreOfElasticModels) {
  const Folder folder;
  ExportJobOptions options;
  options.model = test::write_tiny(folder);
  options.output = folder / "x.onnx";
  options.variant = "0";
  expect_failure(run_export(options), Code::kInvalidArgument, {"variant", "elastic"});
  EXPECT_FALSE(std::filesystem::exists(options.output));
}

}  // namespace
}  // namespace limber
