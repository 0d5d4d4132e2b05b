// Runs the program as a user would and catches what it says.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace limber {

struct Outcome {
  int code = -1;
  std::string out, err;
};

// The shell command `limber ARGUMENTS`, with `input` on stdin.
Outcome limber_program(const std::string& arguments, const std::string& input = {});

// `limber ARGUMENTS --budget`, with twice the time for as long as the program says that it is too small.
Outcome in_time(const std::string& arguments, int seconds = 2);

// An empty folder for one test, removed at its end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// What it printed, as JSON; a failed run is a failed test.
nlohmann::json json_of(const Outcome& outcome);
bool contains(const std::string& text, const std::string& part);

std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& text);

}  // namespace limber
