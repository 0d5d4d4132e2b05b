#include <gtest/gtest.h>

#include <sstream>

#include "tests/cli/program.h"

namespace limber {
namespace {

using nlohmann::json;

// Busy every other second.
std::string trace(int samples) {
  std::string text;
  for (int t = 0; t < samples; ++t)
    text +=
        json{{"kind", "device.sample"}, {"time_s", 10 + t}, {"cpu_busy", t % 2 == 0 ? 0.25 : 0.75}}.dump() +
        "\n";
  return text;
}

std::vector<json> lines_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::vector<json> lines;
  std::istringstream text(outcome.out);
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line, nullptr, false));
  return lines;
}

TEST(Device, OneReadingWhereThereIsNoTerminal) {
  const Outcome text = limber_program("device --interval 0.1");
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* part : {"machine ", "cores ", "limits ", "load ", "memory ", "in 0.5 s"})
    EXPECT_TRUE(contains(text.out, part)) << part << " is not in\n" << text.out;
  EXPECT_FALSE(contains(text.out, "\x1b")) << "no terminal, no escapes";
  const json one = json_of(limber_program("device --interval 0.1 --json --ahead 3"));
  EXPECT_GE(one["load"], 0.0);
  EXPECT_LE(one["load"], 1.0);
  EXPECT_GE(one["machine"]["cores"], 1);
  EXPECT_GT(one["memory_free_bytes"], 0);
  EXPECT_NEAR(one["ahead_s"].get<double>(), 0.3, 1e-9);
}

TEST(Device, ATraceIsRecordedAndPlayedBack) {
  const Folder folder;
  const std::string path = folder / "trace.jsonl";
  const std::string record = "device --seconds 0.3 --interval 0.1 --record " + path;
  const auto live = lines_of(limber_program(record + " --json"));
  ASSERT_EQ(live.size(), 3U);
  const auto again = lines_of(limber_program("device --json --replay " + path));
  ASSERT_EQ(again.size(), 3U);
  EXPECT_EQ(again[2]["load"], live[2]["load"]);
  EXPECT_EQ(again[2]["time_s"], live[2]["time_s"]);
  const Outcome twice = limber_program(record);
  EXPECT_EQ(twice.code, 1);
  EXPECT_EQ(twice.out, "");
  EXPECT_TRUE(contains(twice.err, "is there already")) << twice.err;
}

TEST(Device, FollowsThePatternOfATrace) {
  const Folder folder;
  write_text(folder / "t.jsonl", trace(60));
  const auto readings = lines_of(limber_program("device --ahead 1 --json --replay " + (folder / "t.jsonl")));
  ASSERT_EQ(readings.size(), 60U);
  EXPECT_FALSE(readings[2]["load_fitted"]);
  EXPECT_TRUE(readings[59]["load_fitted"]);
  EXPECT_NEAR(readings[59]["load_ahead"].get<double>(), 0.25, 0.02) << "0.75 now";
  EXPECT_FALSE(readings[59].contains("others")) << "the trace does not tell";
  const Outcome text = limber_program("device --ahead 1 --replay " + (folder / "t.jsonl"));
  EXPECT_TRUE(contains(text.out, "60 readings in 59.0 s: load 0.50 on average, 0.75 at most")) << text.out;
  EXPECT_TRUE(contains(text.out, "    59.0 s  load 0.75 -> 0.25")) << text.out;
}

TEST(Device, SaysWhatIsWrong) {
  const Folder folder;
  write_text(folder / "bad.jsonl", trace(1) + R"({"kind":"device.sample","time_s":99,"cpu_busy":7})");
  const auto expect = [&](const std::string& arguments, int code, const std::string& part) {
    const Outcome outcome = limber_program("device " + arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  };
  expect("--replay " + (folder / "bad.jsonl"), 1, "bad.jsonl:2: 'cpu_busy' is 7; expected 0 to 1");
  expect("--replay " + (folder / "none.jsonl"), 1, "none.jsonl");
  expect("--replay a --record b", 2, "both given");
  expect("--interval 0", 2, "--interval");
  expect("--seconds nan", 2, "--seconds");
}

}  // namespace
}  // namespace limber
