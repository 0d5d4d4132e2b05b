#include "adapt/master/train_master.h"

#include "adapt/master/judge_master.h"
#include "adapt/master/statistics.h"
#include "tests/adapt/master/small_master.h"
#include "train/init.h"

namespace limber::adapt {
namespace {

constexpr int64_t kTaught = 16;

LoaderOptions loading() {
  LoaderOptions how;
  how.batch = kTaught;
  how.workers = 0;
  how.input.height = how.input.width = 16;
  how.drop_last = true;
  return how;
}

// That knows what it is asked about.
AdaptedModel trained_model(const std::shared_ptr<const Dataset>& data) {
  AdaptedModel model = residual_model();
  EXPECT_TRUE(initialise(model.graph, *model.weights, 1).ok());
  TrainingOptions how{.threads = 1};
  how.step = {.batch = kTaught, .optimizer = {.kind = OptimizerKind::kAdam}};
  const auto training = *TrainingSession::create(model.graph, model.weights, model.backends, how);
  const auto loader = *Loader::make(data, loading());
  training->set_rate(0.01);
  for (uint64_t epoch = 0; epoch < 4; ++epoch) {
    EXPECT_TRUE(loader->start_epoch(epoch).ok());
    for (Batch batch = *loader->next(); batch.size > 0; batch = *loader->next()) {
      std::memcpy(training->images().raw(), batch.images.raw(), batch.images.bytes());
      std::memcpy(training->labels().raw(), batch.labels.raw(), batch.labels.bytes());
      EXPECT_TRUE(training->step().ok());
    }
  }
  model.weights = std::make_shared<Parameters>(*training->snapshot());
  return model;
}

MasterTraining short_training(int64_t batches) {
  MasterTraining how;
  how.batch = kTaught;
  how.batches = batches;
  how.rate = 0.01;
  how.workers = 0;
  how.input.height = how.input.width = 16;
  return how;
}

MasterJudging judging(const std::shared_ptr<const Dataset>& data, int64_t unseen) {
  MasterJudging how;
  LoaderOptions as_they_are = loading();
  as_they_are.augment = false;
  how.seen = *statistics_images(**Loader::make(data, as_they_are));
  how.unseen = stripes(unseen, 2);
  how.batch = 50;
  how.workers = 0;
  how.input.height = how.input.width = 16;
  return how;
}

// With half of its units a master is better than the original with its largest, and it is as good as ever
// with all of them.
TEST(TrainMaster, PartsOfAMasterAreBetterThanThoseOfTheOriginal) {
  const auto data = stripes(160, 1);
  const AdaptedModel original = trained_model(data), model = master_of(original);
  const auto trained = train_master(model, original, data, short_training(100));
  ASSERT_TRUE(trained.ok()) << trained.status().message();
  EXPECT_EQ(trained->images, 100 * kTaught);
  MasterJudging how = judging(data, 200);
  how.shares = {1, 0.5, 0.3};
  const auto levels = judge_master(model, original, how);
  ASSERT_TRUE(levels.ok()) << levels.status().message();
  ASSERT_EQ(levels->size(), 3u);
  EXPECT_GT((*levels)[0].accuracy, (*levels)[0].by_size - 0.05);
  EXPECT_GT((*levels)[1].accuracy, (*levels)[1].by_size + 0.05);
  EXPECT_LT((*levels)[1].operations, 0.5);
  EXPECT_GT((*levels)[2].accuracy, (*levels)[2].by_size + 0.05);
}

TEST(TrainMaster, EndsWithEqualWeightsForEqualSeeds) {
  const auto data = stripes(64, 1);
  const AdaptedModel original = residual_model();
  const auto weights = [&](uint64_t seed) {
    const AdaptedModel model = master_of(original);
    MasterTraining how = short_training(6);
    how.seed = seed;
    EXPECT_TRUE(train_master(model, original, data, how).ok());
    return test::bytes_of(*model.weights);
  };
  const auto first = weights(1);
  EXPECT_EQ(first, weights(1));
  EXPECT_NE(first, weights(2));
}

// Without labels it learns what the original says: those of the data may be anything.
TEST(TrainMaster, LooksAtNoLabelsWhereThereAreNone) {
  const AdaptedModel original = residual_model();
  const auto data = stripes(64, 1);
  const auto weights = [&](double label_share) {
    const AdaptedModel model = master_of(original);
    MasterTraining how = short_training(4);
    how.label_share = label_share;
    EXPECT_TRUE(train_master(model, original, data, how).ok());
    return test::bytes_of(*model.weights);
  };
  EXPECT_NE(weights(0), weights(0.5));
}

TEST(TrainMaster, StopsAndKeepsWhatItHas) {
  const AdaptedModel original = residual_model(), model = master_of(original);
  const auto before = test::bytes_of(*model.weights);
  std::atomic<bool> stop{false};
  int saved = 0;
  MasterTraining how = short_training(1000000);
  how.stop = &stop;
  how.progress = [&](const MasterProgress& p) { stop = p.images >= 3 * kTaught; };
  how.save = [&](double) -> Status { return ++saved, Status(); };
  const auto trained = train_master(model, original, stripes(64, 1), how);
  ASSERT_TRUE(trained.ok()) << trained.status().message();
  EXPECT_EQ(trained->images, 3 * kTaught);
  EXPECT_EQ(saved, 1);
  EXPECT_NE(before, test::bytes_of(*model.weights));
}

// What another process began has an order already, which stays.
TEST(TrainMaster, GoesOnFromGatesThatAreNotOpen) {
  const AdaptedModel original = residual_model(), model = master_of(original);
  draw_gates(model, 5);
  const auto before = test::bytes_of(*model.weights);
  MasterTraining how = short_training(1);
  how.rate = 1e-12;
  ASSERT_TRUE(train_master(model, original, stripes(64, 1), how).ok());
  EXPECT_EQ(before.at("gate/first/weight"), test::bytes_of(*model.weights)["gate/first/weight"]);
  EXPECT_TRUE(before.at("stem.mean") == test::bytes_of(*model.weights)["stem.mean"]) << "of the whole: stays";
}

TEST(TrainMaster, RefusesWhatCannotWork) {
  const AdaptedModel original = residual_model(), model = master_of(original);
  const auto few = train_master(model, original, stripes(10, 1), short_training(1));
  EXPECT_EQ(few.status().code(), Code::kInvalidArgument);
  EXPECT_NE(few.status().message().find("smaller batch"), std::string::npos) << few.status().message();
  const auto none = train_master(original, original, stripes(64, 1), short_training(1));
  EXPECT_EQ(none.status().code(), Code::kInvalidArgument);
  EXPECT_NE(none.status().message().find("gates"), std::string::npos) << none.status().message();
}

TEST(JudgeMaster, WithoutLabelsTheOriginalIsRight) {
  const auto data = stripes(64, 1);
  const AdaptedModel original = residual_model(), model = master_of(original);
  MasterJudging how = judging(data, 50);
  how.shares = {1, 0.5};
  how.labels = false;
  const auto levels = judge_master(model, original, how);
  ASSERT_TRUE(levels.ok()) << levels.status().message();
  EXPECT_EQ((*levels)[0].accuracy, 1) << "open gates change nothing";
  EXPECT_EQ((*levels)[0].by_size, 1);
  EXPECT_LT((*levels)[1].accuracy, 1);
}

TEST(JudgeMaster, IsStopped) {
  const AdaptedModel original = residual_model(), model = master_of(original);
  MasterJudging how = judging(stripes(64, 1), 50);
  const std::atomic<bool> stop{true};
  how.stop = &stop;
  EXPECT_EQ(judge_master(model, original, how).status().code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace limber::adapt
