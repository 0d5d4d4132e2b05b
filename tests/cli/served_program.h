// `limber serve` as a process, from its first line to its last.
#pragma once

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.h"

namespace limber {

class ServedProgram {
 public:
  // `limber serve ARGUMENTS --json`, at any free ports unless the arguments name some. Returns when it is
  // ready or has ended.
  explicit ServedProgram(const std::string& arguments);
  ~ServedProgram();  // kills it if it still runs
  ServedProgram(const ServedProgram&) = delete;
  ServedProgram& operator=(const ServedProgram&) = delete;

  const nlohmann::json& ready() const { return ready_; }  // the line that says so; discarded: none came
  uint16_t port() const { return ready_.is_object() ? ready_.value("http_port", uint16_t{0}) : uint16_t{0}; }
  int pid() const { return pid_; }
  // Seconds of processor time that it has used.
  double cpu_seconds() const;

  // The rest of what it says once it has ended by the signal; the code is 128 + the signal that killed it.
  Outcome end(int signal = SIGTERM);

 private:
  std::string read_line();

  Folder folder_;
  int pid_ = -1, out_ = -1;
  std::string read_;  // and not taken yet
  nlohmann::json ready_;
};

}  // namespace limber
