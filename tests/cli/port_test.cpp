// limber port: from a file of goals to a model for each.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/cli/program.h"

namespace limber {
namespace {

using nlohmann::json;

constexpr const char* kGoals = R"({"format": 1, "devices": {"phone": {"gflops": 20, "gbs": 6}}, "goals": [
  {"name": "all", "device": "phone", "targets": {"latency": "1s"}},
  {"name": "small", "device": "phone", "targets": {"parameters": "60K"}},
  {"name": "never", "device": "phone", "targets": {"parameters": 3}}]})";

std::string port_command(const Folder& folder) {
  return "port " + (folder / "goals.json") +
         " --model builtin:resnet8 --data synthetic:count=64 --batch 8 --threads 1 --images 32 --epochs 0 " +
         "--step-images 0 ";
}

TEST(Port, GoesOnAfterItWasKilled) {
  const Folder folder;
  write_text(folder / "goals.json", kGoals);
  const std::string command = port_command(folder) + "-o " + (folder / "ported");
  const std::string first = folder / "ported/all/goal.json";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::string line = "exec '" LIMBER_BINARY "' " + command + " >/dev/null 2>&1";
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 3000 && !std::filesystem::exists(first); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const auto before = std::filesystem::last_write_time(first);
  const Outcome rest = limber_program(command + " --resume --json");
  EXPECT_EQ(rest.code, 1) << "one is refused: " << rest.err;
  const json found = json::parse(rest.out);
  EXPECT_GE(found["known"], 1);
  EXPECT_EQ(found["kept"], 2);
  EXPECT_EQ(found["refused"], 1);
  EXPECT_EQ(std::filesystem::last_write_time(first), before);
  for (const json& goal : found["goals"]) {
    if (goal["name"] == "small") {
      EXPECT_LE(goal["parameters"], 60000);
    }
  }
  EXPECT_EQ(limber_program("check " + (folder / "ported/small/model.onnx")).code, 0);
}

TEST(Port, NamesWhatIsWrongByItsPath) {
  const Folder folder;
  write_text(folder / "goals.json",
             R"({"format": 1, "goals": [{"device": "here", "targets": {"latency": "soon"}}]})");
  const Outcome wrong = limber_program(port_command(folder) + "-o " + (folder / "ported"));
  EXPECT_EQ(wrong.code, 1);
  EXPECT_TRUE(contains(wrong.err, "goals[0].targets.latency: is \"soon\"")) << wrong.err;
  EXPECT_EQ(limber_program(port_command(folder)).code, 2) << "no folder";
}

}  // namespace
}  // namespace limber
