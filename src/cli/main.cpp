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
  const auto running = std::filesystem::read_symlink("/proc/self/exe", problem).filename();
  if (problem || running != std::filesystem::path(argv[0]).filename()) return;
  if (::setenv("GOMP_SPINCOUNT", "20000", 0) == 0) ::execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  limit_spinning(argv);
  limber::CommandLine line;
  for (auto* add :
       {limber::add_inspect, limber::add_check, limber::add_run, limber::add_profile, limber::add_bench,
        limber::add_export, limber::add_train, limber::add_eval, limber::add_elastify, limber::add_search,
        limber::add_exits_command, limber::add_report}) {
    add(line);
  }
  return line.run(argc, argv);
}
