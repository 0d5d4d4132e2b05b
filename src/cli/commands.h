// The program `limber`: one file per command. Each add_* function declares a command's options; the
// function stored in `action` does the work after parsing.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "base/status.h"

namespace limber {

// Exit codes, documented in docs/exit-codes.md.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitUnsupported = 3;

// An exit code when the command got as far as that; a Status otherwise.
using Action = std::function<Result<int>()>;

int run_command_line(int argc, char** argv);

void add_inspect(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_profile(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
std::string version_text();

// Prints "limber: error: ..." and gives kExitUsage: for what only shows once the model is known.
int usage_error(const Status& status);

}  // namespace limber
