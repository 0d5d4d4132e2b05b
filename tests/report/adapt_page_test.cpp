#include "report/adapt_page.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "record/record_file.h"
#include "tests/report/xml.h"

namespace limber {
namespace {

AdaptWindowRecord window_record(int64_t step, const std::string& domain, double accuracy, double frozen) {
  AdaptWindowRecord window;
  window.step = step;
  window.frames = 100;
  window.domain = domain;
  window.accuracy = accuracy;
  window.frozen = frozen;
  window.estimate = 0.75;
  return window;
}

// Two domains, what answers learns in the second; its first window is not scored.
std::string stream_history(const std::string& strategy, bool ended, std::optional<double> worst = {}) {
  StartRecord start{RunHeader{
      .job = "adapt", .options = {{"strategy", strategy}, {"model", "m<1>.onnx"}}, .environment = {}}};
  std::string text =
      record_line(start, 1) + "\n" + record_line(window_record(100, "clean", 0.9, 0.9), 2) + "\n";
  AdaptWindowRecord lesson = window_record(200, "fog@5", 0, 0.5);
  lesson.scored = false;
  text += record_line(lesson, 3) + "\n";
  AdaptEventRecord event;
  event.step = 200;
  event.what = "adapted";
  event.frame = 200;
  event.domain = "fog@5";
  event.reason = "+5.0 points <so>";
  text += record_line(event, 3) + "\n" + record_line(window_record(300, "fog@5", 0.8, 0.5), 4) + "\n";
  if (!ended) return text;
  AdaptEndRecord end;
  end.step = 300;
  end.skipped = 3;
  end.worst_below_frozen = worst;
  return text + record_line(end, 5) + "\n";
}

AdaptLog adapt_log(const std::string& strategy, const std::string& text) {
  AdaptLog log = parse_adapt_history(text, strategy);
  EXPECT_TRUE(log.damaged.empty());
  log.path = log.name = strategy;
  return log;
}

std::string sound_adapt_page(const std::vector<AdaptLog>& runs) {
  const std::string page = adapt_page(runs);
  EXPECT_EQ(xml_problem(page.substr(page.find("<html"))), "");
  return page;
}

TEST(AdaptPage, OfOneStreamShowsItsEventsAndEstimates) {
  const AdaptLog run = adapt_log("bn", stream_history("bn", true, 0.034));
  const AdaptSummary sum = summarise(run);
  EXPECT_EQ(sum.frames, 300);
  EXPECT_EQ(sum.labelled, 200) << "what is to be learnt from does not count";
  EXPECT_NEAR(sum.accuracy, 0.85, 1e-12);
  EXPECT_NEAR(sum.frozen, 0.7, 1e-12);
  EXPECT_EQ(sum.adapted, 1);
  const std::string page = sound_adapt_page({run});
  for (const char* part : {"A stream that was followed", "m&lt;1&gt;.onnx", "Accuracy over the stream",
                           "fog@5", "+5.0 points &lt;so&gt;", "3 frames that cannot be read", ">3.4<"})
    EXPECT_TRUE(has(page, part)) << part;
}

TEST(AdaptPage, OfSeveralComparesThem) {
  const std::string page = sound_adapt_page(
      {adapt_log("none", stream_history("none", true)), adapt_log("tent", stream_history("tent", false))});
  for (const char* part : {"Strategies compared on a stream", "tent", "the stream is not over", "+15.0"})
    EXPECT_TRUE(has(page, part)) << part;
}

TEST(AdaptPage, RunsAreFoundInTheFolderOfAll) {
  const std::string folder = testing::TempDir() + "adapt_page_test";
  for (const char* name : {"bn", "none", "other"}) {
    std::filesystem::create_directories(folder + "/" + name);
    const std::string text = name == std::string("other") ? "{}\n" : stream_history(name, false);
    ASSERT_TRUE(os_files().write(folder + "/" + name + "/history.jsonl", text).ok());
  }
  EXPECT_EQ(adapt_runs_in(folder), (std::vector<std::string>{folder + "/none", folder + "/bn"}));
  EXPECT_TRUE(adapt_runs_in(folder + "/bn").empty());
  EXPECT_TRUE(adapt_runs_in("/nowhere").empty());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace limber
