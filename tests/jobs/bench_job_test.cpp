#include "jobs/bench_job.h"

#include <algorithm>
#include <cmath>

#include "tests/jobs/tiny.h"

namespace limber {
namespace {

BenchJobOptions tiny_bench(const Folder& folder) {
  BenchJobOptions options;
  options.model = test::write_tiny(folder);
  options.threads = 1;
  options.tune = Tune::kOff;
  options.tune_cache = "";
  options.batch = 4;
  options.runs = 7;
  options.warm_up = 1;
  return options;
}

TEST(BenchJob, EveryRunCounts) {
  const Folder folder;
  const BenchJobOptions options = tiny_bench(folder);
  const auto model = BenchModel::open(options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_NE(model->worker().session, nullptr);
  EXPECT_EQ(model->worker().training, nullptr);
  const auto result = measure(*model, options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->seconds.size(), 7U);
  EXPECT_TRUE(std::is_sorted(result->seconds.begin(), result->seconds.end()));
  EXPECT_EQ(result->batch, 4);
  EXPECT_EQ(result->threads, 1);
  EXPECT_GT(result->seconds.front(), 0);
  EXPECT_GE(result->mean, result->seconds.front());
  EXPECT_LE(result->mean, result->seconds.back());
}

TEST(BenchJob, ATrainingStepIsARunToo) {
  const Folder folder;
  BenchJobOptions options = tiny_bench(folder);
  options.last = 1;
  const auto model = BenchModel::open(options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_NE(model->worker().training, nullptr);
  ASSERT_TRUE(measure(*model, options).ok());
}

TEST(BenchJob, NumbersThatMakeNoSenseAreRefused) {
  for (int BenchJobOptions::*count :
       {&BenchJobOptions::last, &BenchJobOptions::runs, &BenchJobOptions::warm_up}) {
    BenchJobOptions options;
    options.*count = -1;
    EXPECT_EQ(check(options).code(), Code::kInvalidArgument);
  }
  BenchJobOptions options;
  options.seconds = NAN;
  EXPECT_EQ(check(options).code(), Code::kInvalidArgument);
  EXPECT_TRUE(check(BenchJobOptions()).ok());
}

TEST(BenchWorker, AnswersOrSaysWhatItKnows) {
  const Folder folder;
  const auto model = BenchModel::open(tiny_bench(folder));
  ASSERT_TRUE(model.ok()) << model.status().message();
  BenchAnswers answers(model->worker());
  const auto times = answers.answer("run 3");
  ASSERT_TRUE(times.ok()) << times.status().message();
  EXPECT_EQ(std::count(times->begin(), times->end(), ' '), 2) << *times;
  EXPECT_TRUE(answers.answer("info").ok());
  EXPECT_TRUE(answers.answer("memory").ok());
  for (const char* line : {"", "walk 3", "run", "run -1", "run many", "toggle 1 1 1"})
    EXPECT_FALSE(answers.answer(line).ok()) << line;
}

TEST(BenchJob, PercentilesAreTimesThatWereMeasured) {
  BenchResult result;
  for (int i = 1; i <= 10; ++i) result.seconds.push_back(i);
  EXPECT_EQ(result.percentile(0), 1);
  EXPECT_EQ(result.percentile(0.5), 5);
  EXPECT_EQ(result.percentile(0.51), 6);
  EXPECT_EQ(result.percentile(0.99), 10);
  EXPECT_EQ(result.percentile(1), 10);
  result.batch = 8;
  result.mean = 4;
  EXPECT_EQ(result.per_second(), 2);
}

}  // namespace
}  // namespace limber
