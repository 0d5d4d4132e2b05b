#include "jobs/eval_job.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "io/model_card.h"
#include "jobs/classifier.h"
#include "jobs/compare_job.h"
#include "jobs/elastify_job.h"
#include "jobs/eval_page.h"
#include "jobs/export_job.h"
#include "jobs/predict_job.h"
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
  const EvaluationRecord& record = (*result)->record;
  int64_t images = 0, right = 0, pairs = 0, binned = 0;
  for (const auto& one : record.by_class()) images += one.images, right += one.correct;
  for (const auto& cell : record.confusion) pairs += cell.count;
  for (const auto& bin : record.bins) binned += bin.images;
  EXPECT_EQ(record.images, 200);
  EXPECT_EQ(images, 200);
  EXPECT_EQ(pairs, 200);
  EXPECT_EQ(binned, 200);
  EXPECT_DOUBLE_EQ(static_cast<double>(right) / 200, (*result)->evaluation.top1);
  const auto& worst = record.worst;
  ASSERT_EQ(worst.size(), 20U);
  for (size_t i = 1; i < worst.size(); ++i) EXPECT_GE(worst[i - 1].confidence, worst[i].confidence);
  EXPECT_NE(worst[0].truth, worst[0].predicted);
  EXPECT_FALSE(worst[0].image.empty());
  EXPECT_EQ((*result)->worst.size(), worst.size());
  EXPECT_EQ(listener.stage, "evaluating");
}

TEST(EvalJob, BecomesAPageWithPictures) {
  const Folder folder;
  const EvalJobOptions options = tiny_evaluation(test::write_tiny(folder), "synthetic:size=16,count=100");
  const auto result = run_eval(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const EvaluationRecord& record = (*result)->record;
  EXPECT_EQ(record.problem(), "");
  EXPECT_EQ(record.images, 100);
  EXPECT_EQ(record.correct(), std::llround(100 * (*result)->evaluation.top1));
  const std::string path = folder / "new/page.html";
  ASSERT_TRUE(write_eval_page(**result, path).ok());
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
  EXPECT_EQ((*result)->record.by_class()[2].images, 2);
  EXPECT_EQ((*result)->record.by_class()[3].images, 2);
  EXPECT_EQ((*result)->record.by_class()[0].images, 0);
}

TEST(EvalJob, ClassesNamedByNumberAreTheModels) {
  const Folder folder;
  const auto result =
      run_eval(tiny_evaluation(test::write_tiny(folder), test::write_classes(folder, {"0", "1", "2"})));
  EXPECT_TRUE(result.ok()) << result.status().message();
}

// A network that, fed 0..1, calls every image bright; centred about a mean, it tells dark from bright.
std::string write_grey(const Folder& folder) {
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
  EXPECT_TRUE(export_onnx(net.graph, *net.params, folder / "grey.onnx").ok());
  for (int i = 0; i < 16; ++i) {
    folder.write_image(fmt::format("images/bright/{}.png", i), static_cast<uint8_t>(200 + i), 16);
    folder.write_image(fmt::format("images/dark/{}.png", i), static_cast<uint8_t>(20 + i), 16);
  }
  return folder / "grey.onnx";
}
constexpr const char* kDoubt = "fed other pixels than it was trained with";

TEST(EvalJob, DoubtsPixelsThatTheNetworkCannotTellApart) {
  const Folder folder;
  EvalJobOptions options = tiny_evaluation(write_grey(folder), folder / "images");
  test::Listener doubtful;
  const auto blind = run_eval(options, doubtful.control());
  ASSERT_TRUE(blind.ok()) << blind.status().message();
  EXPECT_EQ((*blind)->evaluation.top1, 0.5);
  EXPECT_TRUE(contains(doubtful.notes, kDoubt)) << doubtful.notes;
  options.image.preset = *find_preset("imagenet");
  test::Listener sure;
  EXPECT_EQ((*run_eval(options, sure.control()))->evaluation.top1, 1);
  EXPECT_EQ(sure.notes, "");
}

TEST(EvalJob, OthersDoubtThemToo) {
  const Folder folder;
  const std::string grey = write_grey(folder);
  for (const bool said : {false, true}) {
    ImageOptions image;
    if (said) image.preset = *find_preset("imagenet");
    PredictJobOptions predict;
    predict.model = grey;
    predict.images = {folder / "images"};
    predict.image = image;
    CompareJobOptions compare;
    compare.a.model = compare.b.model = grey;
    compare.data = folder / "images";
    compare.seconds = 0;
    compare.image = image;
    TrainJobOptions train = test::tiny_training(folder);
    train.model = grey;
    train.data = folder / "images";
    train.validation.clear();
    train.output = folder / (said ? "said" : "unsaid");
    train.image = image;
    ElastifyJobOptions elastify;
    elastify.model = grey;
    elastify.data = folder / "images";
    elastify.output = folder / (said ? "elastic-said" : "elastic-unsaid");
    elastify.budget = 0;
    elastify.threads = 1;
    elastify.image = image;
    test::Listener by_predict, by_compare, by_train, by_elastify;
    ASSERT_TRUE(run_predict(predict, by_predict.control()).ok());
    ASSERT_TRUE(run_compare(compare, by_compare.control()).ok());
    const auto trained = run_train(train, by_train.control());
    ASSERT_TRUE(trained.ok()) << trained.status().message();
    (void)run_elastify(elastify, by_elastify.control());  // has no block to work on; the doubt comes first
    EXPECT_EQ(contains(by_elastify.notes, kDoubt), !said) << by_elastify.notes;
    EXPECT_EQ(contains(by_predict.notes, kDoubt), !said) << by_predict.notes;
    EXPECT_EQ(contains(by_compare.notes, kDoubt), !said) << by_compare.notes;
    EXPECT_EQ(contains(by_train.notes, kDoubt), !said) << by_train.notes;
  }
}

TEST(EvalJob, ATrainingIsJudgedByWhatItHeldOut) {
  const Folder folder;
  TrainJobOptions training = test::tiny_training(folder);
  training.model = write_grey(folder);
  training.data = folder / "images";
  training.validation.clear();
  training.validation_share = 0.25;
  const auto trained = run_train(training);
  ASSERT_TRUE(trained.ok()) << trained.status().message();
  ASSERT_EQ(trained->validation_images, 8);
  EvalJobOptions options = tiny_evaluation(training.output, training.data);
  const auto held = run_eval(options);
  ASSERT_TRUE(held.ok()) << held.status().message();
  EXPECT_EQ((*held)->evaluation.loss, trained->summary.state.best_loss);
  EXPECT_EQ((*held)->judged.images.part, JudgedImages::Part::kHeldOut);
  options.split = Split::kTrain;
  EXPECT_EQ((*run_eval(options))->judged.images.count, 24);
  options.split = Split::kTest;
  folder.write_image("images/dark/new.png", 9, 16);
  const auto other = run_eval(options);  // other data: nobody knows what was learnt from
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_EQ((*other)->judged.images.part, JudgedImages::Part::kGiven);
  EXPECT_EQ((*other)->evaluation.images, 33);
  CompareJobOptions compare;
  compare.a.model = training.model;
  compare.b.model = training.output;
  compare.data = folder / "images";
  compare.seconds = 0;
  EXPECT_EQ(run_compare(compare)->images.count, 33);
  std::filesystem::remove(folder / "images/dark/new.png");
  EXPECT_EQ(run_compare(compare)->images.text(), "8 images of " + compare.data + " that were held out");
}

TEST(TrainJob, AnotherTrainingPreparesImagesAsTheFirst) {
  const Folder folder;
  TrainJobOptions training = test::tiny_training(folder);
  training.image.preset = *find_preset("imagenet");
  ASSERT_TRUE(run_train(training).ok());
  const auto first = checkpoint_of(training.output);
  training.model = std::exchange(training.output, folder / "second");
  training.image = {};
  ASSERT_TRUE(run_train(training).ok());
  const auto second = checkpoint_of(training.output);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(describe((*second)->input), describe((*first)->input));
}

// As of the checkpoint of a training whose model came with a fixed number.
TEST(EvalJob, AFixedNumberOfImagesAtATimeIsKept) {
  const Folder folder;
  const std::string model = test::write_tiny(folder, "fixed.onnx", 1, R"(graph "fixed" {
    input %x: f32[8,3,16,16]
    param %fc: f32[10,3]
    %p: f32[8,3,1,1] = GlobalAveragePool(%x)
    %f: f32[8,3] = Reshape(%p) {shape=<8,3>}
    %z: f32[8,10] = Gemm(%f, %fc) {trans_b=1}
    output %z as "z"
  })");
  const auto result = run_eval(tiny_evaluation(model, "synthetic:size=16,count=20"));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ((*result)->evaluation.images, 20);
  PredictJobOptions predict;
  predict.model = model;
  predict.images = {folder.write_image("one.png", 9, 16)};
  const auto predicted = run_predict(predict);
  ASSERT_TRUE(predicted.ok()) << predicted.status().message();
  EXPECT_EQ((*predicted)->predictions.size(), 1U);
}

// Said before anything is made of it, and nothing is left behind.
TEST(ElastifyJob, WhatIsNoClassifierIsRefused) {
  const Folder folder;
  ElastifyJobOptions options;
  options.model = test::write_tiny(folder, "map.onnx", 1, R"(graph "map" {
    input %x: f32[N,3,16,16]
    param %w: f32[4,3,1,1]
    %y: f32[N,4,16,16] = Conv(%x, %w)
    output %y as "y"
  })");
  options.data = "synthetic:size=16,count=40";
  options.output = folder / "elastic";
  options.budget = 1;
  options.answers = Answers::kClasses;
  expect_failure(run_elastify(options), Code::kInvalidArgument,
                 {"map.onnx", "a classifier has f32[N,classes]"});
  EXPECT_FALSE(std::filesystem::exists(options.output));
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
  PredictJobOptions predict;
  predict.model = options.model;
  predict.images = {folder.write_image("grey.png", 90, 16)};
  expect_failure(run_predict(predict), Code::kInvalidArgument, {"grey.png", "not numbers (NaN)"});
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
  EXPECT_EQ(job->classes(), (*result)->record.classes);
}

TEST(Calibration, IsTheDistanceOfConfidenceFromAccuracy) {
  ClassificationSums sums({"a", "b"}, 2, 5);
  const float sure = std::log(0.8F / 0.2F);  // softmax 0.8
  for (uint32_t i = 0; i < 10; ++i) sums.add(i, i < 5 ? 0 : 1, std::vector<float>{sure, 0});
  const auto [record, worst] = std::move(sums).take();
  EXPECT_NEAR(record.calibration_error(), 0.3, 1e-6);  // says 80 %, is right in half
  EXPECT_EQ(record.worst.size(), 5U);
  EXPECT_EQ(worst, (std::vector<uint32_t>{5, 6, 7, 8, 9}));
  EXPECT_EQ(record.mistaken().size(), 1U);
  EXPECT_EQ(record.by_class()[0].predicted, 10);
  EXPECT_EQ(record.by_class()[0].correct, 5);
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
  EXPECT_EQ((*read_card(folder / "y.onnx"))->classes, (*of_run)->record.classes);
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
