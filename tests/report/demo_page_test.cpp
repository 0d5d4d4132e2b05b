#include "report/demo_page.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/report/records.h"
#include "tests/report/xml.h"

namespace limber {
namespace {

DemoTraining training(const std::string& name, const std::string& history, double seconds, double accuracy) {
  auto log = parse_history(history, name + "/history.jsonl");
  EXPECT_TRUE(log.ok()) << log.status().message();
  return {
      .name = name, .seconds = seconds, .wall_s = seconds + 1, .accuracy = accuracy, .log = *std::move(log)};
}

DemoReport example() {
  DemoReport report{.folder = "demo", .machine = "a <fast> CPU", .version = "limber 1"};
  const std::string epochs = epoch_text(1, 40, 0.6, 20) + epoch_text(2, 80, 0.8, 22);
  report.trainings = {training("full", start_line("full") + epochs, 40, 0.9),
                      training("elastic", elastic_history(), 20, 0.89),
                      training("last", start_line("last") + epochs, 10, 0.5),
                      training("shorter", start_line("full") + epochs, 20, 0.88)};
  report.samples_png = "PNG";
  report.original_s = 0.001;
  report.budgets = {{.share = 0.8, .promised_share = 0.7, .promised_s = 0.0007, .measured_s = 0.0007},
                    {.share = 0.4, .promised_share = 0.39, .promised_s = 0.00039, .measured_s = 0.0005}};
  report.elastic.machines = {{"here", {{"0.0", VariantPoint::Kind::kOriginal, 0.001, 0.001, 0.9, 100}}, {}}};
  report.steps = {{"limber train a&b", 3}};
  return report;
}

TEST(DemoPage, IsWellFormedAndSaysWhatWasGainedAndWhatWasNot) {
  const DemoReport report = example();
  EXPECT_DOUBLE_EQ(report.speedup(), 2);
  EXPECT_NEAR(report.points_lost(), 1, 1e-9);
  const std::string page = demo_page(report);
  EXPECT_EQ(xml_problem(page.substr(page.find("<html"))), "");
  for (const char* part : {"2.00 times as fast", "1.0 points of accuracy lost", "1 of 2 subnets keep",
                           "over its budget", "a &lt;fast&gt; CPU", "limber train a&amp;b", "base64,UE5H"})
    EXPECT_TRUE(has(page, part)) << part;
  EXPECT_FALSE(has(page, "<script")) << "needs nothing else";
}

DemoServed served(const std::string& name, int64_t within_busy, double p90_busy) {
  DemoServed run{.name = name};
  for (int i = 0; i < 3; ++i) {
    DemoPhase phase{
        .busy = i == 1, .from_s = 4.0 * i, .to_s = 4.0 * (i + 1), .requests = 100, .answered = 100};
    phase.within = phase.busy ? within_busy : 97;
    phase.p50_s = 0.02;
    phase.p95_s = 0.03;
    phase.accuracy = 0.9;
    phase.variants = {{"original", 60}, {"a=skip,b<=shrink50", 40}};
    run.phases.push_back(phase);
    run.moments.push_back({4.0 * i + 2, phase.busy ? p90_busy : 0.03});
  }
  return run;
}

DemoReport served_example(int64_t fixed, int64_t elastic) {
  DemoReport report = example();
  report.serving = {
      .budget_s = 0.04, .idle_p90_s = 0.03, .slack = 1.3, .rate = 50, .neighbours = 2, .batch = 16};
  report.serving.variants = 4;
  report.serving.runs = {served("fixed", fixed, std::numeric_limits<double>::infinity()),
                         served("elastic", elastic, 0.035)};
  report.serving.runs[1].switches = {{4.5, "original", "a=skip", "expected 90 ms exceeds 40 ms"}};
  return report;
}

TEST(DemoPage, ShowsHowItWasServed) {
  const std::string page = demo_page(served_example(10, 95));
  EXPECT_EQ(xml_problem(page.substr(page.find("<html"))), "");
  for (const char* part :
       {"Keeping its deadline beside a busy neighbour", "misses its deadline, and the elastic one keeps it",
        "class=\"shade\"", "over 160 ms", "2 blocks changed 40", "exceeds 40 ms", ">budget<"})
    EXPECT_TRUE(has(page, part)) << part;
  EXPECT_FALSE(has(page, "inf")) << "what never came is drawn at the top";
}

TEST(DemoPage, SaysSoWhenTheLoopDoesNotKeepTheDeadline) {
  EXPECT_TRUE(has(demo_page(served_example(10, 80)), "does NOT keep its deadline"));
  EXPECT_TRUE(has(demo_page(served_example(95, 96)), "Both keep their deadline"));
  DemoReport busy = served_example(10, 95);
  for (DemoPhase& phase : busy.serving.runs[0].phases) phase.within = 10;
  EXPECT_TRUE(has(demo_page(busy), "busy even without the neighbour"));
  DemoReport alone = served_example(10, 30);
  alone.serving.variants = 1;
  EXPECT_TRUE(has(demo_page(alone), "nothing to choose from"));
  EXPECT_FALSE(has(demo_page(example()), "neighbour")) << "nothing was served";
}

TEST(DemoPage, PictureIsAFileOfItsOwn) {
  const std::string picture = demo_picture(example());
  EXPECT_EQ(xml_problem(picture), "");
  for (const char* part :
       {"<style>", "--c0:", "Accuracy over training time", "Accuracy over latency", ">elastic<"})
    EXPECT_TRUE(has(picture, part)) << part;
}

}  // namespace
}  // namespace limber
