#include "tests/cli/served_program.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <sstream>

namespace limber {
namespace {

constexpr int kPatienceMs = 120000;  // nothing takes so long, also under a sanitizer on a busy machine

bool read_more(int from, std::string& to) {
  pollfd wait{from, POLLIN, 0};
  if (::poll(&wait, 1, kPatienceMs) <= 0) return false;
  std::array<char, 4096> bytes;
  const ssize_t got = ::read(from, bytes.data(), bytes.size());
  if (got > 0) to.append(bytes.data(), static_cast<size_t>(got));
  return got > 0;
}

}  // namespace

ServedProgram::ServedProgram(const std::string& arguments) {
  const auto port = [&](const std::string& option) {
    return contains(arguments, option) ? "" : " " + option + " 0";
  };
  const std::string command = "XDG_CACHE_HOME='" + (folder_ / "cache") + "' exec '" LIMBER_BINARY "' serve " +
                              arguments + port("--http-port") + port("--grpc-port") + " --json 2>'" +
                              (folder_ / "err") + "'";
  int ends[2];
  if (::pipe(ends) != 0) return;
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  out_ = ends[0];
  const std::string line = read_line();
  ready_ = nlohmann::json::parse(line, nullptr, false);
  EXPECT_TRUE(ready_.is_object()) << line << read_text(folder_ / "err");
}

ServedProgram::~ServedProgram() {
  if (pid_ > 0) (void)end(SIGKILL);
  if (out_ >= 0) ::close(out_);
}

std::string ServedProgram::read_line() {
  size_t end;
  while ((end = read_.find('\n')) == std::string::npos)
    if (!read_more(out_, read_)) return std::exchange(read_, "");
  const std::string line = read_.substr(0, end);
  read_.erase(0, end + 1);
  return line;
}

double ServedProgram::cpu_seconds() const {
  const std::string stat = read_text("/proc/" + std::to_string(pid_) + "/stat");
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));  // the name may have spaces
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

Outcome ServedProgram::end(int signal) {
  ::kill(pid_, signal);
  while (read_more(out_, read_)) continue;
  int status = 0;
  EXPECT_EQ(::waitpid(std::exchange(pid_, -1), &status, 0) > 0, true);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), std::exchange(read_, ""),
          read_text(folder_ / "err")};
}

}  // namespace limber
