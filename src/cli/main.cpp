#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "cli/commands.h"

namespace {

// Threads that wait for work spin for a while before they sleep. The OpenMP runtime's own choice, seconds of
// it, is ruinous as soon as another process wants the cores; a few microseconds are as good on an idle
// machine. It reads the environment when it is loaded, so the program has to start again.
void limit_spinning(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  // Under an emulator or an explicit dynamic linker the running file is not this program.
  std::error_code problem;
  const auto running = std::filesystem::read_symlink("/proc/self/exe", problem);
  if (problem || running.filename() != std::filesystem::path(argv[0]).filename()) return;
  // By its path, so that it keeps its name in lists of processes.
  if (::setenv("GOMP_SPINCOUNT", "20000", 0) == 0) ::execv(running.c_str(), argv);
}

}  // namespace

int main(int argc, char** argv) {
  limit_spinning(argv);
  limber::CommandLine line;
  const auto add = [&](const char* heading, std::initializer_list<void (*)(limber::CommandLine&)> commands) {
    line.group(heading);
    for (auto* command : commands) command(line);
  };
  add("First look", {limber::add_demo});
  add("Run and measure a model", {limber::add_inspect, limber::add_check, limber::add_run, limber::add_predict,
                                  limber::add_profile, limber::add_bench, limber::add_export});
  add("Train, all of it or what is worth it", {limber::add_train, limber::add_eval, limber::add_report});
  add("Make it change its shape", {limber::add_elastify, limber::add_search, limber::add_exits_command});
  return line.run(argc, argv);
}
