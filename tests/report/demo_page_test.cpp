#include "report/demo_page.h"

#include <gtest/gtest.h>

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
                      training("last", start_line("last") + epochs, 10, 0.5)};
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

TEST(DemoPage, PictureIsAFileOfItsOwn) {
  const std::string picture = demo_picture(example());
  EXPECT_EQ(xml_problem(picture), "");
  for (const char* part :
       {"<style>", "--c0:", "Accuracy over training time", "Accuracy over latency", ">elastic<"})
    EXPECT_TRUE(has(picture, part)) << part;
}

}  // namespace
}  // namespace limber
