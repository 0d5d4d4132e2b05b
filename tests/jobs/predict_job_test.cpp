#include "jobs/predict_job.h"

#include "jobs/eval_job.h"
#include "tests/jobs/tiny.h"

namespace limber {
namespace {

PredictJobOptions tiny_prediction(const std::string& model, std::vector<std::string> images) {
  PredictJobOptions options;
  options.model = model;
  options.images = std::move(images);
  options.threads = 1;
  return options;
}

TEST(PredictJob, NamesClassesOfATrainingMostConfidentFirst) {
  const Folder folder;
  TrainJobOptions training = test::tiny_training(folder);
  training.data = test::write_classes(folder, {"cat", "dog", "emu"}, 8);
  training.validation = training.data;
  training.trainer.epochs = 3;
  ASSERT_TRUE(run_train(training).ok());
  PredictJobOptions options = tiny_prediction(training.output, {training.data});
  options.top = 2;
  options.batch = 5;  // the last batch is not full
  const auto result = run_predict(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const auto& all = (*result)->predictions;
  ASSERT_EQ(all.size(), 24U);
  int64_t right = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i].top.size(), 2U);
    EXPECT_GE(all[i == 0 ? 0 : i - 1].top[0].probability, all[i].top[0].probability);
    right += test::contains(all[i].image, "/" + all[i].top[0].label + "/") ? 1 : 0;
  }
  // The same images are prepared and judged in the same way as by an evaluation.
  EvalJobOptions evaluation;
  evaluation.model = training.output;
  evaluation.data = training.data;
  evaluation.threads = 1;
  const auto judged = run_eval(evaluation);
  ASSERT_TRUE(judged.ok()) << judged.status().message();
  EXPECT_EQ(static_cast<double>(right) / 24, (*judged)->evaluation.top1);
}

TEST(PredictJob, SkipsWhatCannotBeReadOnDemand) {
  const Folder folder;
  const std::string good = folder.write_image("good.png", 9, 16), bad = folder.write("bad.png", "rubbish");
  PredictJobOptions options = tiny_prediction(test::write_tiny(folder), {bad, good});
  expect_failure(run_predict(options), Code::kCorrupt, {"bad.png"});
  options.on_bad_image = OnBadImage::kSkip;
  const auto result = run_predict(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ((*result)->predictions.size(), 1U);
  EXPECT_EQ((*result)->predictions[0].image, good);
  EXPECT_EQ((*result)->skipped.size(), 1U);
}

TEST(PredictJob, RefusesNothingAndEmptyFolders) {
  const Folder folder;
  const std::string model = test::write_tiny(folder);
  folder.make("empty");
  expect_failure(run_predict(tiny_prediction(model, {})), Code::kInvalidArgument, {"which images"});
  expect_failure(run_predict(tiny_prediction(model, {folder / "empty"})), Code::kNotFound,
                 {"holds no images"});
  PredictJobOptions few = tiny_prediction(model, {folder.write_image("x.png", 9, 16)});
  few.classes = {"cat", "dog"};
  expect_failure(run_predict(few), Code::kInvalidArgument, {"2 names", "tells 10 apart"});
}

}  // namespace
}  // namespace limber
