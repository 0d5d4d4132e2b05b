#include "cli/commands.h"

#include <fmt/core.h>

namespace limber {
namespace {

int report(const Status& status) {
  fmt::print(stderr, "limber: error: {}\n", status.message());
  return status.code() == Code::kUnsupported ? kExitUnsupported : kExitFailed;
}

// CLI11 throws for --help and --version too: those are not errors.
int report_parse(const CLI::App& app, const CLI::ParseError& problem) {
  if (problem.get_exit_code() == 0) return app.exit(problem);
  fmt::print(stderr, "limber: error: {}\nlimber: see 'limber --help' or 'limber COMMAND --help'\n",
             problem.what());
  return kExitUsage;
}

}  // namespace

int usage_error(const Status& status) {
  fmt::print(stderr, "limber: error: {}\n", status.message());
  return kExitUsage;
}

int run_command_line(int argc, char** argv) {
  CLI::App app{"Runs ONNX vision models fast on this machine.", "limber"};
  app.set_version_flag("--version", version_text, "Version, build, operator set range, CPU features");
  app.require_subcommand(1);
  app.footer(
      "MODEL is an ONNX file or builtin:resnet8, builtin:mobilenet, builtin:vit.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 unsupported operator.");
  Action action;
  for (auto* add : {add_inspect, add_check, add_run, add_profile, add_bench, add_export}) add(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return report_parse(app, problem);
  }
  const Result<int> outcome = action();
  return outcome.ok() ? *outcome : report(outcome.status());
}

}  // namespace limber
