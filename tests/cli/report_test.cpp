#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/cli/program.h"

namespace limber {
namespace {

using nlohmann::json;

const std::string kBase =
    "train builtin:resnet8 --data synthetic:count=128 --val synthetic:count=20 --batch 4 --threads 1 "
    "--log-level off ";

TEST(Report, OfRealTrainings) {
  const Folder folder;
  const std::string full = folder / "full", elastic = folder / "elastic";
  ASSERT_EQ(limber_program(kBase + "--epochs 2 -o " + full).code, 0);
  ASSERT_EQ(limber_program(kBase + "--epochs 2 --rho 0.6 --interval-steps 16 -o " + elastic).code, 0);
  const Outcome made = limber_program("report " + full + " " + elastic);
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.err, "");
  EXPECT_EQ(made.out, "report: " + full + "/report.html\n");
  const std::string page = read_text(full + "/report.html");
  for (const char* part : {"Trainings compared", "builtin:resnet8 on synthetic:count=128", "Which of the ",
                           "Median error", "What differs between the runs"})
    EXPECT_TRUE(contains(page, part)) << part;
  const json runs = json_of(limber_program("report " + full + "/ " + elastic + " --json"))["runs"];
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0]["run"], "full");
  EXPECT_EQ(runs[0]["strategy"], "full");
  EXPECT_EQ(runs[0]["ratio_to_full"], 1.0);
  EXPECT_EQ(runs[0]["steps"], 64);
  EXPECT_FALSE(runs[0].contains("rho"));
  EXPECT_EQ(runs[1]["strategy"], "elastic");
  EXPECT_EQ(runs[1]["rho"], 0.6);
  EXPECT_GT(runs[1]["ratio_to_full"], 0.0);
  EXPECT_GT(runs[1]["selections"], 0);
  EXPECT_LE(runs[1]["tensors_chosen"], runs[1]["tensors"]);
  EXPECT_EQ(runs[1]["missing"], json::array());
  // A strict parser has the last word, where there is one.
  const std::string checks =
      "command -v python3 >/dev/null || exit 0; python3 -c 'import sys, xml.dom.minidom as m;"
      " m.parse(sys.argv[1])' ";
  EXPECT_EQ(std::system((checks + "'" + full + "/report.html'").c_str()), 0);
}

TEST(Report, DamageIsNamedAndOnlyEverythingIsTooMuch) {
  const Folder folder;
  const std::string good = R"({"kind":"epoch","epoch":1,"step":4,"loss":2,"accuracy":0.5,"seconds":1})";
  write_text(folder / "history.jsonl", good + "\n{\"kind\":\"epoch\",\n");
  const Outcome some = limber_program("report " + (folder / ".") + " -o " + (folder / "page.html"));
  EXPECT_EQ(some.code, 0) << some.err;
  EXPECT_TRUE(contains(some.err, "history.jsonl:2: not JSON")) << some.err;
  EXPECT_TRUE(contains(read_text(folder / "page.html"), "history.jsonl:2: not JSON"));
  const auto expect = [&](const std::string& arguments, int code, const std::string& part) {
    const Outcome outcome = limber_program("report " + arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "limber: error: ")) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  };
  expect("", 2, "runs");
  expect((folder / ".") + " --json -o x.html", 2, "--json");
  expect((folder / ".") + " -o " + (folder / "new/page.html"), 1, "there is no folder " + (folder / "new"));
  expect(folder / "nowhere", 1, "not the folder of a training");
  expect(folder / "history.jsonl", 1, "not the folder of a training");
  write_text(folder / "history.jsonl", "");
  expect(folder / ".", 1, "is empty");
  write_text(folder / "history.jsonl", "x\n");
  expect(folder / ".", 1, "history.jsonl:1: not JSON");
  const Outcome help = limber_program("report --help");
  EXPECT_EQ(help.code, 0);
  EXPECT_TRUE(contains(help.out, "Examples:"));
}

}  // namespace
}  // namespace limber
