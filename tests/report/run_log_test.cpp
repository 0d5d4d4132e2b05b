#include "report/run_log.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "record/record_file.h"
#include "report/summary.h"
#include "tests/report/records.h"

namespace limber {
namespace {

RunLog parsed(const std::string& text) {
  auto log = parse_history(text, "h.jsonl");
  EXPECT_TRUE(log.ok()) << log.status().message();
  if (!log.ok()) return {};
  log->name = log->path = "run";
  return *std::move(log);
}

TEST(History, EveryKindOfLineIsRead) {
  const RunLog log = parsed(elastic_history());
  EXPECT_TRUE(log.begun && log.named && log.damaged.empty());
  EXPECT_EQ(log.option("strategy"), "elastic");
  EXPECT_EQ(log.environment.at("data"), "photos");
  ASSERT_EQ(log.epochs.size(), 2U);
  EXPECT_EQ(log.epochs[1].val_accuracy, 0.7);
  ASSERT_EQ(log.selections.size(), 2U);
  EXPECT_EQ(log.selections[0].chosen, (std::vector<size_t>{1, 2}));
  EXPECT_EQ(log.selections[1].share, 0.4);
  ASSERT_EQ(log.choices.size(), 2U);
  EXPECT_EQ(log.last_step(), 80);
}

TEST(History, DamagedLinesAreNamedAndLeftOut) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{\"kind\":\"epo", "not JSON"},
      {"[1,2]", "not a JSON object"},
      {"{}", "'kind'"},
      {R"({"kind":7})", "'kind'"},
      {R"({"kind":"epoch","step":1,"seconds":1})", "there is no 'epoch'"},
      {R"({"kind":"epoch","epoch":-1,"step":1,"seconds":1})", "'epoch'"},
      {R"({"kind":"epoch","epoch":1e300,"step":1,"seconds":1})", "'epoch'"},
      {R"({"kind":"epoch","epoch":18446744073709551615,"step":1,"seconds":1})", "'epoch'"},
      {R"({"kind":"epoch","epoch":1,"step":1})", "there is no 'seconds'"},
      {R"({"kind":"epoch","epoch":1,"step":1,"seconds":-4})", "'seconds'"},
      {R"({"kind":"epoch","epoch":1,"step":1,"seconds":1e999})", "not JSON"},
      {R"({"kind":"epoch","epoch":1,"step":1,"seconds":1,"loss":"low"})", "'loss'"},
      {R"({"kind":"epoch","epoch":1,"step":"1","seconds":1})", "'step'"},
      {R"({"kind":"start","step":0,"options":[]})", "'options'"},
      {R"({"kind":"tensors","step":0,"names":[]})", "empty"},
      {R"({"kind":"tensors","step":0,"names":[1]})", "'names'"},
      {R"({"kind":"tensors","step":0,"names":["a"]})", "other lines are about 3"},
      {R"({"kind":"selection","step":90,"chosen":[0],"importance":[1]})", "other lines are about 3"},
      {R"({"kind":"selection","step":90,"chosen":[3],"importance":[1,1,1]})", "chooses tensor 3 of 3"},
      {R"({"kind":"selection","step":90,"chosen":[1,1],"importance":[1,1,1]})", "ascending"},
      {R"({"kind":"selection","step":90,"chosen":[-1],"importance":[1,1,1]})", "'chosen'"},
      {R"({"kind":"selection","step":90,"chosen":{},"importance":[1,1,1]})", "'chosen'"},
      {R"({"kind":"selection","step":90,"chosen":[0]})", "'importance'"},
      {R"({"kind":"selection","step":20,"chosen":[0],"importance":[1,1,1]})", "step 20 comes after step 44"},
      {R"({"kind":"choice_end","step":90,"predicted_s":null,"measured_s":1})", "'predicted_s'"},
      {std::string(200'000, '['), "not JSON"},
      {"\xFF\xFE", "not JSON"},
  };
  for (const auto& [line, what] : cases) {
    const RunLog log = parsed(elastic_history() + line + "\n" + epoch_text(3, 120, 0.8, 12));
    ASSERT_EQ(log.damaged.size(), 1U) << line.substr(0, 200);
    EXPECT_EQ(log.damaged[0].rfind("h.jsonl:9: ", 0), 0U) << log.damaged[0];
    EXPECT_NE(log.damaged[0].find(what), std::string::npos) << log.damaged[0];
    EXPECT_EQ(log.epochs.size(), 3U);
    EXPECT_EQ(log.selections.size(), 2U);
    EXPECT_EQ(log.tensors.size(), 3U);
  }
}

TEST(History, CutAnywhereIsStillRead) {
  const std::string whole = elastic_history();
  const size_t first = whole.find('\n');
  for (size_t length = 0; length < whole.size(); ++length) {
    const auto log = parse_history(whole.substr(0, length), "h.jsonl");
    EXPECT_EQ(log.ok(), length >= first) << length;
  }
}

TEST(History, NumbersThatAreNoneAndKindsOfOthersAreNoDamage) {
  const RunLog log = parsed(start_line("full") +
                            R"({"kind":"epoch","epoch":1,"step":4,"loss":null,"accuracy":null,"seconds":1})" +
                            "\n\n  \n" + R"({"kind":"subnet","anything":[1]})" + "\n");
  EXPECT_TRUE(log.damaged.empty());
  ASSERT_EQ(log.epochs.size(), 1U);
  EXPECT_FALSE(log.epochs[0].loss);
}

TEST(History, WithNothingToTellIsAnError) {
  const auto message = [](const std::string& text) {
    return parse_history(text, "h.jsonl").status().message();
  };
  EXPECT_NE(message("").find("h.jsonl is empty"), std::string::npos);
  EXPECT_NE(message(" \n\n").find("h.jsonl is empty"), std::string::npos);
  EXPECT_NE(message("x\ny\n").find("h.jsonl:1: not JSON"), std::string::npos);
  EXPECT_NE(message("{\"kind\":\"subnet\"}\n").find("tells of no training"), std::string::npos);
}

TEST(History, OfAResumedTrainingSaysWhere) {
  const RunLog log = parsed(start_line("full") + epoch_text(1, 40, 0.6, 10) +
                            start_line("full", "resume", 40) + epoch_text(2, 80, 0.7, 10));
  EXPECT_EQ(log.resumed, (std::vector<int64_t>{40}));
  EXPECT_EQ(log.epochs.size(), 2U);
}

TEST(History, IsReadAsTrainingsWriteIt) {
  const std::string text =
      record_line(StartRecord{{.options = {{"strategy", "elastic"}}}}) + "\n" +
      record_line(TensorsRecord{.names = {"a", "b"}}) + "\n" +
      record_line(SelectionRecord{.step = 8, .chosen = {1}, .importance = {0, 1}}) + "\n" +
      record_line(EpochRecord{.epoch = 1, .step = 10, .val_accuracy = 0.5, .seconds = 1}) + "\n" +
      record_line(EpochRecord{.epoch = 2, .step = 20, .seconds = 1}) + "\n" +
      record_line(ResumeRecord{{.step = 10, .options = {{"strategy", "full"}}}}) + "\n" +
      record_line(EpochRecord{.epoch = 2, .step = 20, .val_accuracy = 0.7, .seconds = 1}) + "\n" +
      record_line(ChoiceRecord{.step = 20}).substr(0, 30);
  const RunLog log = parsed(text);
  EXPECT_TRUE(log.damaged.empty());
  EXPECT_EQ(log.option("strategy"), "full");
  EXPECT_EQ(log.tensors, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(log.selections.size(), 1U);
  EXPECT_EQ(log.resumed, (std::vector<int64_t>{10}));
  ASSERT_EQ(log.epochs.size(), 2U);
  EXPECT_EQ(log.epochs[1].val_accuracy, 0.7) << "the epoch before the resumption is void";
  EXPECT_TRUE(log.choices.empty());
}

TEST(History, WithoutNamesNumbersTheTensors) {
  const RunLog log = parsed(start_line("elastic") + selection_text(16, {1}, {0, 1}));
  EXPECT_FALSE(log.named);
  EXPECT_EQ(log.tensors, (std::vector<std::string>{"tensor 0", "tensor 1"}));
}

TEST(RunFolderOfAReport, IsToldApartFromOtherThings) {
  const auto folder = std::filesystem::temp_directory_path() / "limber_report_no_run";
  std::filesystem::create_directories(folder);
  const auto message = [](const std::string& path) { return read_run(path).status().message(); };
  EXPECT_NE(message(folder).find("not the folder of a training"), std::string::npos);
  EXPECT_NE(message(folder / "none").find("not the folder of a training"), std::string::npos);
  ASSERT_TRUE(os_files().write(folder / "file", "x").ok());
  EXPECT_NE(message(folder / "file").find("not the folder of a training"), std::string::npos);
  ASSERT_TRUE(os_files().write(folder / "run" / "history.jsonl", elastic_history()).ok());
  for (const std::string end : {"run", "run/", "run/."}) {
    const auto log = read_run((folder / end).string());
    ASSERT_TRUE(log.ok()) << log.status().message();
    EXPECT_EQ(log->name, "run") << end;
  }
  std::filesystem::remove_all(folder);
}

TEST(Summary, OfAnElasticTraining) {
  const RunSummary s = summarise({parsed(elastic_history())})[0];
  EXPECT_EQ(s.strategy, "elastic");
  EXPECT_EQ(s.rho, 0.5);
  EXPECT_EQ(s.epochs, 2);
  EXPECT_EQ(s.planned_epochs, 3);
  EXPECT_EQ(s.best_accuracy, 0.7);
  EXPECT_EQ(s.best_epoch, 2);
  EXPECT_EQ(s.seconds, 21);  // evaluation excluded
  EXPECT_EQ(s.chosen, 1);
  EXPECT_EQ(s.tensors, 3);
  EXPECT_EQ(s.left, 2);
  EXPECT_EQ(s.returned, 1);
  ASSERT_TRUE(s.prediction_error);
  EXPECT_NEAR(*s.prediction_error, 0.2, 1e-12);  // of 0.2 and 0, the upper
  EXPECT_FALSE(s.ratio);
}

TEST(Summary, ComparesTimesWithFullTraining) {
  const RunLog elastic = parsed(elastic_history());
  const RunLog full = parsed(start_line("full") + epoch_text(1, 40, 0.6, 20) + epoch_text(2, 80, 0.8, 22));
  const RunLog shorter = parsed(start_line("last") + epoch_text(1, 40, 0.4, 7));
  const auto all = summarise({elastic, full, shorter});
  EXPECT_EQ(all[0].ratio, 0.5);
  EXPECT_FALSE(all[0].ratio_of_step);
  EXPECT_EQ(all[1].ratio, 1);
  ASSERT_TRUE(all[2].ratio);
  EXPECT_NEAR(*all[2].ratio, 7.0 / 21, 1e-12);
  EXPECT_TRUE(all[2].ratio_of_step);
  RunLog other = elastic;
  other.environment["threads"] = "8";
  EXPECT_FALSE(summarise({full, other})[1].ratio);
  other = elastic;
  other.options["batch"] = "64";
  EXPECT_FALSE(summarise({full, other})[1].ratio);
}

TEST(Summary, SaysWhatIsMissing) {
  const auto all = [](const std::string& history) {
    const RunLog log = parsed(history);
    return fmt::format("{}", fmt::join(what_is_missing(log, summarise({log})[0]), " "));
  };
  EXPECT_NE(all(start_line("elastic")).find("No epoch is recorded"), std::string::npos);
  EXPECT_NE(all(start_line("elastic")).find("No selection is recorded"), std::string::npos);
  EXPECT_NE(all(elastic_history()).find("2 of 3 epochs are recorded"), std::string::npos);
  EXPECT_NE(all(epoch_text(1, 40, 0.6, 20)).find("options is missing"), std::string::npos);
  EXPECT_NE(all(elastic_history() + "x\n").find("h.jsonl:9: not JSON"), std::string::npos);
  EXPECT_EQ(all(elastic_history() + epoch_text(3, 120, 0.6, 20)), "");
}

}  // namespace
}  // namespace limber
