#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "cli/description.h"

namespace limber {
namespace {

std::string escaped(const std::string& text, const char* special) {
  std::string out;
  for (const char c : text) {
    if (std::string_view(special).find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// A function that offers words beside paths: its name is made of the type's letters.
std::string function_name(const std::string& type) {
  std::string name = "_limber_";
  std::copy_if(type.begin(), type.end(), std::back_inserter(name),
               [](unsigned char c) { return std::isalpha(c); });
  return name;
}

std::string action(const OptionText& option) {
  if (option.paths) return option.values.empty() ? "_files" : function_name(option.type);
  if (option.values.empty()) return " ";  // nothing to offer
  return fmt::format("({})", fmt::join(option.values, " "));
}

// Arguments of _arguments, one per name.
std::vector<std::string> specs(const OptionText& option) {
  const std::string value =
      option.type.empty() ? "" : fmt::format(":{}:{}", escaped(option.type, ":\\"), action(option));
  if (option.positional) return {shell_quoted((option.repeats ? "*" : "") + value)};
  std::vector<std::string> all;
  for (const std::string& name : option.names) {
    const std::string excluded = option.repeats ? "*" : fmt::format("({})", fmt::join(option.names, " "));
    const char* equals = !option.type.empty() && name.starts_with("--") ? "=" : "";
    all.push_back(shell_quoted(
        fmt::format("{}{}{}[{}]{}", excluded, name, equals, escaped(option.help, "[]\\"), value)));
  }
  return all;
}

std::string arguments_call(const CommandText& command, const std::string& indent,
                           const std::vector<std::string>& more) {
  std::string text = indent + "_arguments -C -S";
  for (const OptionText& option : command.options) {
    for (const std::string& spec : specs(option)) text += fmt::format(" \\\n{}  {}", indent, spec);
  }
  for (const std::string& spec : more) text += fmt::format(" \\\n{}  {}", indent, shell_quoted(spec));
  return text;
}

std::string helper_functions(const ProgramText& program) {
  std::map<std::string, std::string> functions;
  for (const CommandText& command : program.commands) {
    for (const OptionText& option : command.options) {
      if (!option.paths || option.values.empty()) continue;
      const std::string name = function_name(option.type);
      functions[name] = fmt::format("{}() {{\n  compadd \"$@\" -- {}\n  _files \"$@\"\n}}\n", name,
                                    fmt::join(option.values, " "));
    }
  }
  std::string text;
  for (const auto& [name, function] : functions) text += function;
  return text;
}

}  // namespace

std::string zsh_completion(const ProgramText& program) {
  std::string names, cases;
  for (const CommandText& command : program.commands) {
    names += fmt::format("        {}\n", shell_quoted(command.name + ":" + command.help));
    cases += fmt::format("        {})\n{} ;;\n", command.name, arguments_call(command, "          ", {}));
  }
  return fmt::format(
      "#compdef limber\n# zsh completion of limber {}, made by: limber --completion zsh\n{}_limber() {{\n"
      "  local curcontext=$curcontext state line\n  local -A opt_args\n{} && return\n"
      "  case $state in\n    command)\n      local -a commands=(\n{}      )\n"
      "      _describe -t commands 'limber command' commands ;;\n"
      "    arguments)\n      case $words[1] in\n{}      esac ;;\n  esac\n}}\n"
      "if [[ $funcstack[1] == _limber ]]; then _limber \"$@\"; else compdef _limber limber; fi\n",
      program.version, helper_functions(program),
      arguments_call(program.program, "  ", {"1: :->command", "*:: :->arguments"}), names, cases);
}

}  // namespace limber
