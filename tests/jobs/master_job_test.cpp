#include "jobs/master_job.h"

#include <filesystem>

#include "adapt/master/master.h"
#include "io/onnx.h"
#include "jobs/eval_job.h"
#include "jobs/export_job.h"
#include "jobs/inspect_job.h"
#include "jobs/search_job.h"
#include "tests/jobs/elastic.h"

namespace limber {
namespace {

using test::kNaN;
using test::Watcher;

MasterJobOptions small_master(const std::string& output, const std::string& data = "synthetic:count=64") {
  MasterJobOptions job;
  job.model = "builtin:resnet8";
  job.data = data;
  job.output = output;
  job.batch = 8;
  job.threads = 1;
  job.workers = 0;
  job.budget = 1;
  job.shares = {1, 0.3};
  return job;
}

// With more time where the machine is too slow for the budget.
Result<MasterOutcome> master_in_time(MasterJobOptions& job, const JobControl& control = {}) {
  for (;; job.budget *= 2) {
    auto made = run_master(job, control);
    const bool too_small = made.status().message().find("too small") != std::string::npos;
    if (!too_small || job.budget > 100) return made;
  }
}

TEST(MasterJob, RefusesWhatCannotWorkBeforeItWrites) {
  const Folder folder;
  const std::string output = folder / "master";
  const auto refuses = [&](auto change, const std::string& part, Code code = Code::kInvalidArgument) {
    MasterJobOptions job = small_master(output);
    change(job);
    const auto made = run_master(job);
    EXPECT_EQ(made.status().code(), code) << part << ": " << made.status().message();
    EXPECT_NE(made.status().message().find(part), std::string::npos) << made.status().message();
    EXPECT_EQ(made.status().message().find("--"), std::string::npos) << made.status().message();
    EXPECT_FALSE(std::filesystem::exists(output)) << part;
  };
  refuses([](MasterJobOptions& job) { job.budget = kNaN; }, "budget");
  refuses([](MasterJobOptions& job) { job.budget = 0; }, "budget");
  refuses([](MasterJobOptions& job) { job.rate = 2; }, "rate");
  refuses([](MasterJobOptions& job) { job.shares = {0.5, 1.5}; }, "share");
  refuses([](MasterJobOptions& job) { job.data = ""; }, "data");
  refuses([](MasterJobOptions& job) { job.output = ""; }, "output");
  refuses([](MasterJobOptions& job) { job.batch = 65; }, "65");
  refuses([](MasterJobOptions& job) { job.budget = 1e-3; }, "s or more", Code::kResourceExhausted);
}

// It is an elastic model like any other: found, judged, exported and run by what knows nothing of gates.
TEST(MasterJob, MakesAnElasticModelThatOthersWorkWith) {
  const Folder folder;
  MasterJobOptions job = small_master(folder / "master");
  Watcher watcher;
  const auto made = master_in_time(job, watcher.control());
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_FALSE(made->stopped);
  ASSERT_EQ(made->note.levels.size(), 2u);
  EXPECT_EQ(made->note.levels[0].share, 1);
  EXPECT_LT(made->note.levels[1].operations, 0.3);
  EXPECT_EQ(made->note.count, 64);
  EXPECT_GT(made->note.trained_s, 0);

  const ElasticFolder again = *load_elastic(folder / "master");
  EXPECT_EQ(format_fields(**find_note<MasterNote>(again.info.notes)), format_fields(made->note));
  const auto master = adapt::open_master(again.model.base);
  ASSERT_TRUE(master.ok()) << master.status().message();
  EXPECT_EQ(again.model.base.type(again.model.base.inputs()[0]).shape[0].is_constant(), false) << "any batch";

  SearchJobOptions search;
  search.model = folder / "master";
  search.source = {.data = "synthetic:count=16", .images = 16, .workers = 0};
  search.threads = 1;
  search.latency_share = 1;
  search.margin = 0;
  const auto found = run_search(search);
  EXPECT_TRUE(found.ok()) << found.status().message();

  ExportJobOptions exporting;
  exporting.model = folder / "master";
  exporting.output = folder / "master.onnx";
  ASSERT_TRUE(run_export(exporting).ok());
  EvalJobOptions eval;
  eval.model = folder / "master.onnx";
  eval.data = "synthetic:count=64";
  eval.threads = 1;
  const auto judged = run_eval(eval);
  ASSERT_TRUE(judged.ok()) << judged.status().message();
}

TEST(MasterJob, GoesOnAndRefusesWhatItWasNotMadeFrom) {
  const Folder folder;
  MasterJobOptions job = small_master(folder / "master");
  const auto made = master_in_time(job);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_NE(run_master(job).status().message().find("resume"), std::string::npos);
  job.resume = true;
  job.budget = made->note.spent_s + 2;
  const auto on = run_master(job);
  ASSERT_TRUE(on.ok()) << on.status().message();
  EXPECT_GT(on->note.trained_s, made->note.trained_s);
  EXPECT_GT(on->note.spent_s, made->note.spent_s);
  job.model = "builtin:vit";
  EXPECT_NE(run_master(job).status().code(), Code::kOk);
}

TEST(MasterJob, StopsAndGoesOn) {
  const Folder folder;
  MasterJobOptions job = small_master(folder / "master");
  job.budget = 60;
  Watcher watcher("training the master");
  const auto stopped = run_master(job, watcher.control());
  ASSERT_TRUE(stopped.ok()) << stopped.status().message();
  EXPECT_TRUE(stopped->stopped);
  EXPECT_TRUE(stopped->note.levels.empty());
  job.resume = true;
  job.budget = stopped->note.spent_s + 1;
  const auto on = run_master(job);
  ASSERT_TRUE(on.ok()) << on.status().message();
  EXPECT_EQ(on->note.levels.size(), 2u);
}

TEST(MasterJob, HoldsImagesOutWhereThereIsNoTestPart) {
  const Folder folder;
  MasterJobOptions job = small_master(folder / "master", test::write_images(folder, 100));
  const auto made = master_in_time(job);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->note.count, 10);
  EXPECT_NE(made->note.images.find("that were held out"), std::string::npos) << made->note.images;
}

TEST(MasterJob, LeavesOtherElasticModelsAlone) {
  const Folder folder;
  ElastifyJobOptions other = test::small_job(folder / "elastic");
  other.budget = 0;
  ASSERT_TRUE(run_elastify(other).ok());
  MasterJobOptions job = small_master(folder / "elastic");
  job.resume = true;
  const auto made = run_master(job);
  EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
  EXPECT_NE(made.status().message().find("without gates"), std::string::npos) << made.status().message();
}

}  // namespace
}  // namespace limber
