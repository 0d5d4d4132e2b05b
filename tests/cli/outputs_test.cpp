#include "jobs/outputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <limits>

#include "cli/console.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "tensor/npy.h"
#include "tests/cli/program.h"

namespace limber {
namespace {

using nlohmann::json;

json described(const Tensor& tensor) { return json::parse(describe_outputs({{"y", tensor}}).text())[0]; }

TEST(Outputs, ValuesOfEveryTypeAreNumbers) {
  const auto of = [](const Tensor& tensor) { return described(tensor)["values"]; };
  EXPECT_EQ(of(Tensor::from({1.5f, -2.0f}, {2})), json({1.5, -2.0}));
  EXPECT_EQ(of(Tensor::from({1.5, -2.0}, {2})), json({1.5, -2.0}));
  EXPECT_EQ(of(Tensor::from<int64_t>({INT64_MAX, INT64_MIN}, {2})), json({INT64_MAX, INT64_MIN}));
  EXPECT_EQ(of(Tensor::from<int32_t>({-5}, {1})), json({-5}));
  EXPECT_EQ(of(Tensor::from<uint8_t>({255}, {1})), json({255}));
  EXPECT_EQ(of(Tensor::from<int8_t>({-128, 127}, {2})), json({-128, 127}));
  EXPECT_EQ(of(Tensor::from({true, false}, {2})), json({1, 0}));
  Tensor half = *Tensor::allocate({DType::kF16, {2}});
  static_cast<uint16_t*>(half.raw())[0] = float_to_half(0.5f);
  static_cast<uint16_t*>(half.raw())[1] = float_to_half(-3.0f);
  EXPECT_EQ(of(half), json({0.5, -3.0}));
}

TEST(Outputs, WhatIsNoNumberIsNull) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(described(Tensor::from({nan, inf, -inf, 1.0f}, {4}))["values"],
            json({nullptr, nullptr, nullptr, 1.0}));
}

TEST(Outputs, NamesTypesAndShapes) {
  const json one = described(*Tensor::zeros({DType::kF32, {2, 0, 3}}));
  EXPECT_EQ(one, (json{{"name", "y"}, {"dtype", "f32"}, {"shape", {2, 0, 3}}, {"values", json::array()}}));
  EXPECT_EQ(described(Tensor::scalar(2.0f))["shape"], json::array());
}

TEST(Outputs, TooManyValuesAreLeftOut) {
  const auto count = static_cast<int64_t>(kMostValues);
  EXPECT_EQ(described(*Tensor::zeros({DType::kF32, {count}}))["values"].size(), kMostValues);
  const json more = described(*Tensor::zeros({DType::kF32, {count + 1}}));
  EXPECT_FALSE(more.contains("values"));
  EXPECT_TRUE(contains(more["left_out"], "10001")) << more;
}

// Names of outputs come from files of others.
TEST(Outputs, NamesBecomeFilesInsideTheFolderAndNoTwoTheSame) {
  const Folder folder;
  std::filesystem::create_directories(folder / "out");
  std::vector<NamedTensor> outputs;
  float value = 0;
  for (const char* name : {"plain", "../../etc/passwd", "a/b", "a b", "", ".hidden", "a_b_1", "caf\xc3\xa9"})
    outputs.push_back({name, Tensor::scalar(value++)});
  const auto list = write_outputs(folder / "out", outputs);
  ASSERT_TRUE(list.ok()) << list.status().message();
  const json written = json::parse(read_text(folder / "out/outputs.json"));
  EXPECT_EQ(written, json::parse(list->text()));
  ASSERT_EQ(written.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string file = written[i]["file"];
    EXPECT_EQ(file.find('/'), std::string::npos) << file;
    EXPECT_NE(file[0], '.') << file;
    const auto tensor = read_npy(folder / ("out/" + file));
    ASSERT_TRUE(tensor.ok()) << tensor.status().message();
    EXPECT_EQ(element_as_double(*tensor, 0), static_cast<double>(i)) << file;
  }
}

TEST(Outputs, AFileInPlaceOfTheFolderIsAnError) {
  const Folder folder;
  write_text(folder / "file", "");
  const auto list = write_outputs(folder / "file", {{"y", Tensor::scalar(1.0f)}});
  ASSERT_FALSE(list.ok());
  EXPECT_TRUE(contains(list.status().message(), "file")) << list.status().message();
}

TEST(Table, CountsCharactersNotBytes) {
  Table table({{"name", false, 5}, {"n", true}});
  table.add({"\xc3\xa9\xc3\xa8\xc3\xa0\xc3\xbc\xc3\xb6", "1"});   // five characters fit
  table.add({"x\xc3\xa9\xc3\xa8\xc3\xa0\xc3\xbc\xc3\xb6", "2"});  // of six the last three are kept
  table.add({"\xf0\x9f\x90\xb1\xf0\x9f\x90\xb1 cats", "3"});
  EXPECT_EQ(table.text(),
            "name   n\n"
            "-----  -\n"
            "\xc3\xa9\xc3\xa8\xc3\xa0\xc3\xbc\xc3\xb6  1\n"
            "..\xc3\xa0\xc3\xbc\xc3\xb6  2\n"
            "..ats  3\n");
}

TEST(Table, LimitsOfAlmostNothing) {
  for (size_t limit : {1u, 2u, 3u}) {
    Table table({{"t", false, limit}});
    table.add({"abcdef"});
    EXPECT_EQ(table.text(), limit < 3 ? "t\n--\n..\n" : "t\n---\n..f\n");
  }
}

TEST(Table, WithoutRowsThereIsAHeader) {
  EXPECT_EQ(Table({{"a"}, {"long title", true}}).text(), "a  long title\n-  ----------\n");
}

TEST(ProgressBar, FillsFromEmptyToFull) {
  EXPECT_EQ(progress_bar(0), "[........................]");
  EXPECT_EQ(progress_bar(0.25), "[######..................]");
  EXPECT_EQ(progress_bar(1), "[########################]");
  EXPECT_EQ(progress_bar(-3), progress_bar(0));
  EXPECT_EQ(progress_bar(7), progress_bar(1));
}

TEST(Console, NotesAndWarningsAreLinesOnStderr) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  Console console;
  console.on_note(NoteKind::kNote, "a choice was made");
  console.on_note(NoteKind::kWarning, "something is odd");
  console.on_progress({.stage = "training", .share = 0.5, .text = "half"});  // too soon for a log
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "note: a choice was made\nwarning: something is odd\n");
}

TEST(Signals, TheFirstAsksAndIsSeenByTheJob) {
  ConsoleControl console;
  EXPECT_FALSE(console.control.stop_asked());
  ASSERT_EQ(std::raise(SIGTERM), 0);
  EXPECT_TRUE(console.control.stop_asked());
  EXPECT_TRUE(stop_asked());
  stop_asked() = false;
}

}  // namespace
}  // namespace limber
