#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/cli/program.h"

namespace limber {
namespace {

using nlohmann::json;

const std::string kAdapt =
    "adapt builtin:resnet8 --source-images 100 --threads 1 --workers 0 --log-level off --stream ";
const std::string kFollowed =
    kAdapt +
    "'synthetic:contrast@5*250,clean*100,contrast@5*150' --strategy bn --no-guard --save-every 1ms --resume ";

// Starts `limber ARGUMENTS` and kills it after so long; true when it had ended before.
bool run_for(const std::string& arguments, std::chrono::milliseconds life) {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string command = "exec '" LIMBER_BINARY "' " + arguments + " >/dev/null 2>&1";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  const auto until = std::chrono::steady_clock::now() + life;
  while (std::chrono::steady_clock::now() < until) {
    if (::waitpid(child, &status, WNOHANG) == child) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return false;
}

TEST(AdaptCommand, KilledAtAnyMomentItGoesOnAsIfItHadNot) {
  const Folder folder;
  const std::string alone = folder / "alone", killed = folder / "killed";
  const auto began = std::chrono::steady_clock::now();
  const json whole = json_of(limber_program(kFollowed + "--json -o " + alone));
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
  std::mt19937 random(7);
  for (int kills = 0; kills < 6; ++kills) {
    // Short lives end while it looks at the source, longer ones while it follows and saves.
    const auto life = took * std::uniform_int_distribution<int>(30, 90)(random) / 100;
    if (run_for(kFollowed + "-o " + killed, life)) break;
  }
  const json rest = json_of(limber_program(kFollowed + "--json -o " + killed));
  EXPECT_EQ(rest["windows"], whole["windows"]);
  EXPECT_EQ(rest["frames"], 500);
  EXPECT_EQ(rest["summary"]["adapted"], whole["summary"]["adapted"]);
  const json reported = json_of(limber_program("report " + killed + " --json"))["runs"][0];
  EXPECT_EQ(reported["accuracy"], whole["summary"]["accuracy"]);
}

TEST(AdaptCommand, ComparesStrategiesWithKnownBorders) {
  const Folder folder;
  const std::string output = folder / "followed";
  const std::string asked = kAdapt + "synthetic:contrast@5*110 --borders-known --no-guard --window 50 ";
  const json all =
      json_of(limber_program(asked + "--strategy none,bn,surrogate --operations 30% --json -o " + output));
  ASSERT_EQ(all["strategies"].size(), 3U);
  for (const json& one : all["strategies"]) {
    EXPECT_EQ(one["borders_known"], true);
    EXPECT_EQ(one["labelled_frames"], 60) << "the others are learnt from";
    ASSERT_EQ(one["windows"].size(), 3U);
    EXPECT_EQ(one["windows"][0]["scored"], false);
    EXPECT_EQ(one["windows"][1]["first"], 50);
    EXPECT_EQ(one["windows"][1]["frames"], 50);
    EXPECT_EQ(one["windows"][1]["domain"], "contrast@5");
    EXPECT_EQ(one["windows"][1]["labelled"], true);
    EXPECT_FALSE(one["summary"].contains("worst_below_frozen")) << "there are no 5,000 frames";
    EXPECT_FALSE(one["summary"].contains("false_alarms"));
    for (const char* what : {"answering", "detecting", "learning", "judging"})
      EXPECT_GE(one["seconds"][what].get<double>(), 0) << what;
    EXPECT_GT(one["inference"]["original_s"].get<double>(), 0);
    EXPECT_EQ(one["inference"].contains("adapted_s"), one["strategy"] != "none");
  }
  const json& surrogate = all["strategies"][2]["inference"];
  EXPECT_EQ(surrogate["adapted_frames"], 60);
  EXPECT_GT(surrogate["operations_share"].get<double>(), 0.05);
  EXPECT_LT(surrogate["operations_share"].get<double>(), 0.35);

  const json runs = json_of(limber_program("report " + output + " --json"))["runs"];
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0]["strategy"], "none");
  EXPECT_EQ(runs[1]["accuracy"], all["strategies"][1]["summary"]["accuracy"]);
  const Outcome page = limber_program("report " + output);
  ASSERT_EQ(page.code, 0) << page.err;
  const std::string html = read_text(output + "/report.html");
  for (const char* part : {"Strategies compared on a stream", "Accuracy over the stream", "surrogate"})
    EXPECT_TRUE(contains(html, part)) << part;
}

TEST(AdaptCommand, SaysWhatItCost) {
  const Outcome text = limber_program(kAdapt + "synthetic:contrast@5*150 --strategy none,bn --no-guard");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "costs         ")) << text.out;
  EXPECT_TRUE(contains(text.out, "most lost in 5,000 frames")) << text.out;
  EXPECT_FALSE(contains(text.out, "points lost in 5,000 frames")) << "there are not so many" << text.out;
  const Outcome wrong =
      limber_program(kAdapt + "synthetic:contrast@5*150 --strategy surrogate --operations 0%");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(contains(wrong.err, "25%")) << wrong.err;
}

}  // namespace
}  // namespace limber
