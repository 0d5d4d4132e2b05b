#include "report/training_page.h"

#include <gtest/gtest.h>

#include "tests/report/records.h"
#include "tests/report/xml.h"

namespace limber {
namespace {

RunLog named_run(const std::string& name, const std::string& history) {
  auto log = parse_history(history, name + "/history.jsonl");
  EXPECT_TRUE(log.ok()) << log.status().message();
  log->name = name;
  log->path = "runs/" + name;
  return *std::move(log);
}

void expect_well_formed(const std::string& page) {
  EXPECT_EQ(xml_problem(page.substr(page.find("<html"))), "");
  for (SvgPart svg = next_svg(page, 0); !svg.text.empty(); svg = next_svg(page, svg.at + svg.text.size()))
    EXPECT_EQ(xml_problem(svg.text), "");
}

std::string full_history() {
  return start_line("full") + epoch_text(1, 40, 0.6, 20) + epoch_text(2, 80, 0.8, 22) +
         epoch_text(3, 120, 0.9, 20);
}

TEST(TrainingPage, OfTwoRunsHasEveryPart) {
  const std::string page =
      training_page({named_run("full", full_history()), named_run("elastic", elastic_history())});
  expect_well_formed(page);
  for (const char* part :
       {"Trainings compared", "m&lt;1&gt;.onnx on photos", "Accuracy over training time", "Loss over epochs",
        "What differs between the runs", "<td>strategy</td><td>full</td>", "<h2>elastic</h2>",
        "Which of the 3 tensors", "Share of the time", "Time of a step: predicted and measured",
        "Median error", "b&lt;&amp;&gt;.weight", "2 of 3 epochs are recorded", "0.51 a step", "1 of 3",
        "2, 1"})
    EXPECT_TRUE(has(page, part)) << part;
  EXPECT_FALSE(has(page, "<h2>full</h2>")) << "there is nothing to say about a run without selections";
  EXPECT_FALSE(has(page, "<td>lr</td><td>0.01</td><td>")) << "does not differ";
}

TEST(TrainingPage, IsTheSameForTheSameRuns) {
  const std::vector<RunLog> runs = {named_run("full", full_history()),
                                    named_run("elastic", elastic_history())};
  EXPECT_EQ(training_page(runs), training_page(runs));
}

TEST(TrainingPage, OfLittleIsStillAPage) {
  for (const std::string& history :
       {start_line("full"), start_line("elastic"), full_history(),
        start_line("elastic") + selection_text(16, {1}, {0, 1}),
        start_line("elastic") + selection_text(16, {}, {0, 0}), choice_text(4, 0, 0),
        start_line("full") + R"({"kind":"epoch","epoch":1,"step":4,"accuracy":0.5,"seconds":0})",
        start_line("full", "resume", 40) + epoch_text(2, 80, 0.8, 22)}) {
    const std::string page = training_page({named_run("run", history)});
    expect_well_formed(page);
    EXPECT_TRUE(has(page, "Training: run")) << history;
  }
  const std::string nothing = training_page({named_run("run", start_line("elastic"))});
  EXPECT_TRUE(has(nothing, "No epoch with an accuracy is recorded."));
  EXPECT_TRUE(has(nothing, "No selection is recorded"));
}

TEST(TrainingPage, StaysSmallAndWellFormedForManyTensorsSelectionsAndRuns) {
  std::vector<std::string> names;
  std::vector<double> importance;
  for (int k = 0; k < 400; ++k) {
    names.push_back(fmt::format("stage{}.block{}.conv{}.weight", k / 100, k / 10, k));
    importance.push_back(static_cast<double>((k * 37) % 400) / 400);
  }
  std::string history = start_line("elastic") + tensors_line(names);
  for (int s = 0; s < 500; ++s) history += selection_text(20 * s, {s % 300, 300 + s % 100}, importance);
  std::vector<RunLog> runs;
  for (int r = 0; r < 9; ++r) runs.push_back(named_run("run", history + epoch_text(1, 10'000, 0.5, 60)));
  const std::string page = training_page({runs[0]});
  expect_well_formed(page);
  EXPECT_LT(page.size(), 4'000'000U);
  EXPECT_TRUE(has(page, "500 selections share 160 columns"));
  expect_well_formed(training_page(runs));
}

}  // namespace
}  // namespace limber
