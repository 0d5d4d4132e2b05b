// An elastic model beside a busy neighbour. How long things take is not asserted: the machine is others' too.
#include "jobs/demo_serving.h"

#include "jobs/busy_neighbour.h"
#include "tests/jobs/elastic.h"

namespace limber {
namespace {

using test::Watcher;

ServingTrialOptions short_trial(const std::string& folder) {
  ServingTrialOptions options{.folder = folder, .data = "synthetic:count=40"};
  options.images = 20;
  options.workers = 1;
  options.finding_s = 0.3;
  options.idle_s = 0.2;
  options.busy_s = 0.3;
  return options;
}

TEST(BusyNeighbour, ComesAndGoesWithItsOwner) {
  auto neighbour = BusyNeighbour::make();
  ASSERT_TRUE(neighbour.ok()) << neighbour.status().message();
  EXPECT_GE(neighbour->processes(), 1u);
  neighbour->wake();
  neighbour->sleep();
}

TEST(ServingTrial, CountsEveryRequestOfBothPoliciesInEachPhase) {
  const Folder folder;
  ElastifyJobOptions job = test::small_job(folder / "shapes");
  const auto made = test::elastify_in_time(job);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const auto trial = ServingTrial::open(short_trial(folder / "shapes"), {});
  ASSERT_TRUE(trial.ok()) << trial.status().message();
  const Status found = (*trial)->find_budget();
  ASSERT_TRUE(found.ok()) << found.message();
  for (const auto& [name, policy] :
       {std::pair("fixed", Policy::kFixed), std::pair("elastic", Policy::kFeedback)}) {
    const Status played = (*trial)->play(name, policy);
    ASSERT_TRUE(played.ok()) << played.message();
  }
  const DemoServing& serving = (*trial)->outcome();
  EXPECT_GT(serving.rate, 0);
  EXPECT_DOUBLE_EQ(serving.budget_s, 1.3 * serving.idle_p90_s);
  EXPECT_EQ(serving.images, 20);
  EXPECT_GE(serving.neighbours, 1);
  EXPECT_GE(serving.variants, 1);
  EXPECT_FALSE(serving.verdict().empty());
  ASSERT_EQ(serving.runs.size(), 2u);
  for (const DemoServed& run : serving.runs) {
    ASSERT_EQ(run.phases.size(), 3u) << run.name;
    EXPECT_FALSE(run.moments.empty());
    for (size_t i = 0; i < 3; ++i) {
      const DemoPhase& phase = run.phases[i];
      EXPECT_EQ(phase.busy, i == 1);
      EXPECT_EQ(phase.requests, serving.runs[0].phases[i].requests) << "not the same requests";
      EXPECT_EQ(phase.answered + phase.refused, phase.requests) << "a request was lost";
      EXPECT_LE(phase.within, phase.answered);
      EXPECT_GE(phase.accuracy, 0);
      EXPECT_LE(phase.accuracy, 1);
      EXPECT_LE(phase.p50_s, phase.p95_s);
      int64_t answers = 0;
      for (const auto& [variant, count] : phase.variants) answers += count;
      EXPECT_EQ(answers, phase.answered) << "answers that nothing computed";
    }
  }
  for (const DemoPhase& phase : serving.runs[0].phases) {
    EXPECT_EQ(phase.switches, 0) << "fixed";
    for (const auto& [variant, count] : phase.variants) EXPECT_EQ(variant, "original");
  }
}

TEST(ServingTrial, StopsWhenAsked) {
  const Folder folder;
  ElastifyJobOptions job = test::small_job(folder / "shapes");
  ASSERT_TRUE(test::elastify_in_time(job).ok());
  Watcher watcher("serving, fixed");
  const JobControl control = watcher.control();
  ServingTrialOptions options = short_trial(folder / "shapes");
  options.idle_s = options.busy_s = 1000;
  const auto trial = ServingTrial::open(options, control);
  ASSERT_TRUE(trial.ok()) << trial.status().message();
  ASSERT_TRUE((*trial)->find_budget().ok());
  EXPECT_EQ((*trial)->play("fixed", Policy::kFixed).code(), Code::kResourceExhausted);
  EXPECT_TRUE((*trial)->outcome().runs.empty());
}

TEST(ServingTrial, RefusesWhatIsNoElasticModel) {
  const Folder folder;
  EXPECT_FALSE(ServingTrial::open(short_trial(folder / "nothing"), {}).ok());
}

}  // namespace
}  // namespace limber
