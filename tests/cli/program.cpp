#include "tests/cli/program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace limber {

Outcome in_time(const std::string& arguments, int seconds) {
  const Outcome outcome = limber_program(arguments + " --budget " + std::to_string(seconds) + "s");
  const bool too_small = outcome.code == 1 && contains(outcome.err, "is too small");
  return too_small && seconds < 100 ? in_time(arguments, 2 * seconds) : outcome;
}

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "limber-cli-XXXXXX").string();
  path_ = ::mkdtemp(name.data());
}

Folder::~Folder() { std::filesystem::remove_all(path_); }

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

Outcome limber_program(const std::string& arguments, const std::string& input) {
  const Folder folder;
  write_text(folder / "in", input);
  const std::string command = "XDG_CACHE_HOME='" + (folder / "cache") + "' '" LIMBER_BINARY "' " + arguments +
                              " <'" + (folder / "in") + "' >'" + (folder / "out") + "' 2>'" +
                              (folder / "err") + "'";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, read_text(folder / "out"),
          read_text(folder / "err")};
}

nlohmann::json json_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out, nullptr, false);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace limber
