// limber demo: the story holds together, and what it leaves behind is what it says.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/demo_output.h"
#include "cli/job_words.h"
#include "tests/cli/program.h"

namespace limber {
namespace {

using nlohmann::json;

// As little as still tells every part of the story.
DemoJobOptions tiny(const std::string& folder) {
  DemoJobOptions options;
  options.folder = folder;
  options.model = "builtin:resnet8";
  options.threads = 1;
  options.base_images = 160;
  options.base_epochs = 1;
  options.images = 640;
  options.epochs = 3;
  options.val_images = 50;
  options.judged_images = 100;
#ifdef LIMBER_SANITIZED
  options.elastify_s = 30;
#else
  options.elastify_s = 10;  // all of it is spent, and a machine that is busy needs some seconds
#endif
  options.budgets = {0.9, 0.7};
  options.searched_images = 50;
  options.evaluations = 8;
  options.timed_seconds = 0.1;
  options.finding_s = 0.3;
  options.idle_s = 0.2;
  options.busy_s = 0.3;
  return options;
}

// Keeps what is told.
class Told : public DemoTeller {
 public:
  void on_chapter(int number, int of, const std::string& title, const std::string& /*why*/) override {
    story += fmt::format("{}/{} {}\n", number, of, title);
  }
  std::string on_call(const DemoCall& call) override {
    story += command_line(call) + "\n";
    return command_line(call);
  }
  void on_result(const std::string& text) override { story += text + "\n"; }
  std::string story;
};

TEST(Demo, NumbersFilesAndPageAgree) {
  const Folder folder;
  const std::string dir = folder / "story";
  Told teller;
  const Result<DemoReport> told = run_demo(tiny(dir), {}, &teller);
  ASSERT_TRUE(told.ok()) << told.status().message();
  const json numbers = json::parse(demo_json(*told).text());

  ASSERT_EQ(numbers["trainings"].size(), 4u);
  EXPECT_EQ(numbers["trainings"][3]["name"], "shorter");
  const json &full = numbers["trainings"][0], &elastic = numbers["trainings"][1];
  EXPECT_EQ(elastic["name"], "elastic");
  EXPECT_DOUBLE_EQ(numbers["elastic_faster"],
                   full["train_s"].get<double>() / elastic["train_s"].get<double>());
  EXPECT_DOUBLE_EQ(numbers["elastic_points_lost"],
                   100 * (full["accuracy"].get<double>() - elastic["accuracy"].get<double>()));
  for (const json& training : numbers["trainings"]) {
    EXPECT_GT(training["train_s"], 0);
    EXPECT_LT(training["train_s"], training["wall_s"]);
  }
  ASSERT_EQ(numbers["budgets"].size(), 2u);
  for (const json& budget : numbers["budgets"]) {
    const double share = budget["measured_s"].get<double>() / numbers["original"]["measured_s"].get<double>();
    EXPECT_DOUBLE_EQ(budget["measured"], share);
    EXPECT_EQ(budget["within"], share <= budget["budget"].get<double>());
    // The file is the variant that was found, and the model it says.
    const json inside = json_of(limber_program("inspect " + budget["file"].get<std::string>() + " --json"));
    EXPECT_EQ(inside["parameters"], budget["parameters"]);
  }
  ASSERT_EQ(numbers["serving"]["runs"].size(), 2u);
  for (const json& run : numbers["serving"]["runs"]) {
    ASSERT_EQ(run["phases"].size(), 3u);
    for (const json& phase : run["phases"])
      EXPECT_EQ(phase["answered"].get<int>() + phase["refused"].get<int>(), phase["requests"]);
  }
  const json eval =
      json_of(limber_program("eval " + dir + "/elastic --data synthetic:" + DemoJobOptions().shifts +
                             ",count=100,seed=1000000 "
                             "--threads 1 --json"));
  EXPECT_EQ(eval["accuracy"], elastic["accuracy"]) << "not the command that the story shows";

  const std::string page = read_text(dir + "/report.html"), picture = read_text(dir + "/demo.svg");
  for (const char* part :
       {"what was gained on this machine", "Accuracy over training time", "tensors were trained when",
        "Accuracy over latency", "Promised and measured", "Latency over time", "data:image/png;base64,iVBOR"})
    EXPECT_TRUE(contains(page, part)) << part;
  EXPECT_EQ(picture.rfind("<svg ", 0), 0u);
  EXPECT_FALSE(contains(page, "http://") && contains(page, "src=\"http")) << "loads something";
  const std::string& story = teller.story;
  for (const char* part : {"1/7", "7/7", "limber train builtin:resnet8", "limber elastify ", "limber search ",
                           "limber export ", "times as fast"})
    EXPECT_TRUE(contains(story, part)) << part << "\n" << story;
}

TEST(Demo, AFolderThatIsThereIsLeftAlone) {
  const Folder folder;
  write_text(folder / "mine", "text");
  const Outcome outcome = limber_program("demo -o " + (folder / "mine"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.err, "is there already")) << outcome.err;
  EXPECT_EQ(read_text(folder / "mine"), "text");
}

TEST(Demo, StopsWhenAsked) {
  const Folder folder;
  const std::string dir = folder / "story", out = folder / "out";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::string line = "exec '" LIMBER_BINARY "' demo -o " + dir + " >" + out + " 2>&1";
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 600 && !std::filesystem::exists(dir + "/base/history.jsonl"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << read_text(out);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_TRUE(contains(read_text(out), "limber: stopped; what was done is in")) << read_text(out);
}

}  // namespace
}  // namespace limber
