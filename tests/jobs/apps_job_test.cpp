#include "jobs/apps_job.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

namespace limber {
namespace {

const char* const kCameras =
    R"({"format": "limber-app-profiles", "version": 1, "window_s": 100, "threads": 2, "applications": [
 {"name": "gate", "requests_per_s": 10, "options": [
   {"name": "whole", "size": 1, "latency_s": 0.01, "seconds": [80, 50]},
   {"name": "half", "size": 0.5, "latency_s": 0.005, "seconds": [20, 12]}],
  "domains": [{"name": "fog", "before": [0.5, 0.45], "after": [0.85, 0.8]},
              {"name": "snow", "before": [0.6, 0.5], "after": [0.7, 0.68]}]},
 {"name": "yard", "requests_per_s": 10, "options": [
   {"name": "whole", "size": 1, "latency_s": 0.01, "seconds": [90, 60]}],
  "domains": [{"name": "fog", "before": [0.7], "after": [0.75]}]}]})";

class AppsJob : public testing::Test {
 protected:
  AppsJob() {
    path_ = testing::TempDir() + "apps_job_" + testing::UnitTest::GetInstance()->current_test_info()->name() +
            ".json";
    std::ofstream(path_) << kCameras;
  }
  ~AppsJob() override { std::filesystem::remove(path_); }
  std::string path_;
};

TEST_F(AppsJob, PlansOneWindow) {
  AppsPlanOptions job;
  job.profiles = path_;
  const auto plan = run_apps_plan(job);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_TRUE(plan->schedule.exact);
  EXPECT_EQ(plan->schedule.decisions[0].option, 1u);  // a quarter of the time for almost as much
  EXPECT_GE(plan->schedule.accuracy, plan->whole_models);
  EXPECT_GE(plan->whole_models, plan->none);
  EXPECT_GT(plan->schedule.accuracy, plan->ekya);
  EXPECT_GT(plan->schedule.accuracy, plan->uniform);
  EXPECT_GT(plan->profiling_s, 0);
}

TEST_F(AppsJob, PlansForADomainAndAWindow) {
  AppsPlanOptions job;
  job.profiles = path_;
  job.domain = "snow";
  job.window_s = 1;  // nothing ends in that
  const auto plan = run_apps_plan(job);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->domains, (std::vector<std::string>{"snow", "fog"}));
  EXPECT_TRUE(sched::retraining_order(plan->schedule).empty());
  EXPECT_NEAR(plan->schedule.accuracy, 0.65, 1e-12);
  job.domain = "sand";
  EXPECT_EQ(run_apps_plan(job).status().code(), Code::kNotFound);
}

TEST_F(AppsJob, Simulates) {
  AppsSimulateOptions job;
  job.profiles = path_;
  job.applications = 3;
  job.windows = 3;
  const auto simulation = run_apps_simulate(job);
  ASSERT_TRUE(simulation.ok()) << simulation.status().message();
  EXPECT_EQ(simulation->applications, 3u);
  EXPECT_EQ(simulation->policies.size(), std::size(sched::kPolicies));
}

TEST_F(AppsJob, ALongSimulationStopsWhenItIsAsked) {
  AppsSimulateOptions job;
  job.profiles = path_;
  job.windows = 100000;
  const std::atomic<bool> stop = true;
  const auto simulation = run_apps_simulate(job, {.stop = &stop});
  ASSERT_TRUE(simulation.ok()) << simulation.status().message();
  EXPECT_TRUE(simulation->policies.empty());
}

TEST(AppsJobOptions, AreChecked) {
  EXPECT_EQ(run_apps_plan({}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(run_apps_simulate({}).status().code(), Code::kInvalidArgument);
  AppsPlanOptions plan;
  plan.profiles = "none.json";
  EXPECT_FALSE(run_apps_plan(plan).ok());
  plan.window_s = -1;
  EXPECT_EQ(run_apps_plan(plan).status().code(), Code::kInvalidArgument);
  AppsSimulateOptions simulate;
  simulate.profiles = "none.json";
  simulate.windows = 0;
  EXPECT_EQ(run_apps_simulate(simulate).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace limber
