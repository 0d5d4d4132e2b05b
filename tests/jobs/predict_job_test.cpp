#include "jobs/predict_job.h"

#include "base/file.h"
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

// A file in a .tar: a block of 512 bytes says what it is, then come its own, filled up to a whole block.
std::string tar_entry(const std::string& name, const std::string& bytes) {
  std::string head(512, '\0');
  head.replace(0, name.size(), name);
  head.replace(100, 7, "0000644");
  head.replace(124, 11, fmt::format("{:011o}", bytes.size()));
  head.replace(148, 8, "        ");
  head[156] = '0';
  head.replace(257, 8,
               std::string("ustar\0"
                           "00",
                           8));
  unsigned sum = 0;
  for (const char c : head) sum += static_cast<unsigned char>(c);
  head.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
  return head + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

TEST(PredictJob, LooksIntoArchives) {
  const Folder folder;
  const std::string model = test::write_tiny(folder), loose = folder.write_image("loose.png", 9, 16);
  const std::string png = *os_files().read(loose, 1 << 20);
  const std::string archive = folder.write(
      "photos.tar", tar_entry("deep/a.png", png) + tar_entry("b.png", "rubbish") + std::string(1024, '\0'));
  PredictJobOptions options = tiny_prediction(model, {archive, loose});
  expect_failure(run_predict(options), Code::kCorrupt, {"photos.tar/b.png"});
  options.on_bad_image = OnBadImage::kSkip;
  const auto result = run_predict(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const auto& all = (*result)->predictions;
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].image, archive + "/deep/a.png");
  EXPECT_EQ(all[0].top[0].probability, all[1].top[0].probability) << "the same image";
  ASSERT_EQ((*result)->skipped.size(), 1U);
  expect_failure(run_predict(tiny_prediction(model, {folder / "none.zip"})), Code::kNotFound, {"none.zip"});
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
