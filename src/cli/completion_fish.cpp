#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/description.h"

namespace limber {
namespace {

std::string complete_line(const std::string& when, const std::string& what, const std::string& help) {
  return fmt::format("complete -c limber -n {} {}{}\n", shell_quoted(when), what,
                     help.empty() ? "" : " -d " + shell_quoted(help));
}

// -x: something follows and it is no path; -r -F: a path, even though the program as a whole takes none.
std::string option_line(const std::string& when, const OptionText& option) {
  std::string what;
  for (const std::string& name : option.names) {
    if (option.positional) continue;
    const bool is_long = name.starts_with("--");
    what +=
        fmt::format("{}{} {}", what.empty() ? "" : " ", is_long ? "-l" : "-s", name.substr(is_long ? 2 : 1));
  }
  if (option.positional) {
    what = option.paths ? "-F" : "";
  } else if (!option.type.empty()) {
    what += option.paths ? " -r -F" : " -x";
  }
  if (!option.values.empty())
    what += fmt::format(" -a {}", shell_quoted(fmt::format("{}", fmt::join(option.values, " "))));
  return complete_line(when, what, option.positional ? "" : option.help);
}

}  // namespace

std::string fish_completion(const ProgramText& program) {
  std::string text =
      fmt::format("# fish completion of limber {}, made by: limber --completion fish\n", program.version);
  text += "complete -c limber -f\n";
  for (const OptionText& option : program.program.options)
    text += option_line("__fish_use_subcommand", option);
  for (const CommandText& command : program.commands)
    text += complete_line("__fish_use_subcommand", "-a " + command.name, command.help);
  for (const CommandText& command : program.commands) {
    for (const OptionText& option : command.options)
      text += option_line("__fish_seen_subcommand_from " + command.name, option);
  }
  return text;
}

}  // namespace limber
