#include "cli/description.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>

#include "cli/commands.h"
#include "cli/completion.h"
#include "io/builtin_models.h"
#include "jobs/version.h"

namespace limber {
namespace {

// Types of values that are no paths. All others may be one: a shell offers files where it knows nothing.
constexpr std::array kPlainTypes = {"N",     "NAME=N", "NAME=DIMS", "NAME",    "V",        "TIME",  "BYTES",
                                    "LIMIT", "SHARES", "PATTERN",   "B[,C,S]", "SIDE|HxW", "R,G,B", "SHELL"};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

bool is_choice(CLI::Option& option) {
  try {
    return option.get_validator(kChoiceName) != nullptr;
  } catch (const CLI::OptionNotFound&) {
    return false;
  }
}

// What can stand where a path does.
std::vector<std::string> built_in(const std::string& type) {
  if (type == "DATA") return {"synthetic"};
  if (type == "[NAME=]FILE") return {"builtin:image"};
  std::vector<std::string> models;
  if (type != "MODEL") return models;
  for (const BuiltinModel& model : builtin_list()) models.push_back(fmt::format("builtin:{}", model.name));
  return models;
}

OptionText describe_option(CLI::Option& option) {
  OptionText text;
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  text.help = option.get_description();
  text.positional = !option.nonpositional();
  text.required = option.get_required();
  if (option.get_items_expected_max() == 0) return text;
  text.type = option.get_type_name();
  text.repeats =
      option.get_expected_max() > 1 || option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  if (text.positional) text.names = {text.type};
  if (is_choice(option)) {
    text.values = split(text.type, '|');
    return text;
  }
  text.paths = std::find(kPlainTypes.begin(), kPlainTypes.end(), text.type) == kPlainTypes.end();
  text.values = built_in(text.type);
  return text;
}

CommandText describe_command(CLI::App& app) {
  CommandText text{app.get_name(), app.get_description(), app.get_footer(), {}};
  for (CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) text.options.push_back(describe_option(*option));
  }
  return text;
}

// Ends parsing; the text goes to stdout and ends with one line end.
[[noreturn]] void print_and_end(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  throw CLI::CallForVersion(text, 0);
}

}  // namespace

ProgramText describe(CLI::App& app) {
  ProgramText text{version_number(), describe_command(app), {}};
  for (CLI::App* command : app.get_subcommands({})) {
    text.commands.push_back(describe_command(*command));
    // One without words of its own has inherited the program's.
    if (text.commands.back().footer == text.program.footer) text.commands.back().footer.clear();
  }
  return text;
}

void add_description_options(CLI::App& app) {
  auto print = [](const std::string& shell) { print_and_end(completion_script(shell)); };
  app.add_option_function<std::string>("--completion", print, "Print what makes a shell complete commands")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description("").name(kChoiceName))
      ->type_name("bash|zsh|fish")
      ->trigger_on_parse();
  app.add_flag_callback(
         "--man", [&app] { print_and_end(manual_page(describe(app))); },
         "Print the manual page, for man -l -")
      ->trigger_on_parse();
}

}  // namespace limber
