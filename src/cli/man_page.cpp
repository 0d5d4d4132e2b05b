// One page with all commands and their options, from what the program knows of itself. help2man was tried: it
// reads one --help and knows nothing of commands, so its page lists their names and no option of theirs.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "cli/description.h"

namespace limber {
namespace {

// A line of text: '\' and '-' as themselves, and no request where it begins with '.' or a quote.
std::string roff(const std::string& text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out = "\\&";
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '"') {
      out += "\\(dq";
    } else {
      out += c;
    }
  }
  return out;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

// "--tune auto|on|off": the values are typed as they are, "--threads N": N stands for something.
std::string roff_value(const OptionText& option) {
  return option.values.empty() || option.paths ? italic(option.type) : roff(option.type);
}

std::string option_names(const OptionText& option) {
  if (option.positional) return italic(option.type) + (option.repeats ? " ..." : "");
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(bold(name));
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (!option.type.empty()) text += " " + roff_value(option);
  return text;
}

std::string option_entry(const OptionText& option) {
  return fmt::format(".TP\n{}\n{}{}\n", option_names(option), roff(option.help),
                     option.required ? " (required)" : "");
}

// Lines as they are.
std::string verbatim(const std::string& text) {
  if (text.empty()) return "";
  std::string out = ".PP\n.nf\n", line;
  for (const char c : text + "\n") {
    if (c != '\n') {
      line += c;
      continue;
    }
    out += roff(line) + "\n";
    line.clear();
  }
  return out + ".fi\n";
}

std::string usage_line(const CommandText& command) {
  std::string text = bold("limber " + command.name);
  for (const OptionText& option : command.options) {
    if (option.positional) {
      const std::string name = italic(option.type) + (option.repeats ? "..." : "");
      text += option.required ? " " + name : " [" + name + "]";
    } else if (option.required) {
      text += " " + bold(option.names.back()) + " " + roff_value(option);
    }
  }
  return text + " [" + italic("OPTION") + "...]";
}

// Options that mean the same in more than half of the commands are explained once.
std::vector<OptionText> shared_options(const ProgramText& program) {
  std::vector<OptionText> all, shared;
  for (const CommandText& command : program.commands)
    all.insert(all.end(), command.options.begin(), command.options.end());
  for (const OptionText& option : all) {
    const bool known = std::find(shared.begin(), shared.end(), option) != shared.end();
    const auto times = static_cast<size_t>(std::count(all.begin(), all.end(), option));
    if (!known && 2 * times > program.commands.size()) shared.push_back(option);
  }
  return shared;
}

std::string command_section(const CommandText& command, const std::vector<OptionText>& shared) {
  std::string text =
      fmt::format(".SS {}\n{}\n.PP\n{}\n", command.name, usage_line(command), roff(command.help + "."));
  std::vector<std::string> also;
  for (const OptionText& option : command.options) {
    if (std::find(shared.begin(), shared.end(), option) == shared.end()) {
      text += option_entry(option);
    } else if (!option.positional) {
      also.push_back(bold(option.names.back()));
    }
  }
  if (!also.empty()) text += fmt::format(".PP\nShared options: {}.\n", fmt::join(also, ", "));
  return text + verbatim(command.footer);
}

// "Runs models." as what follows the name in a list of pages.
std::string summary_of(std::string text) {
  if (text.ends_with('.')) text.pop_back();
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace

std::string manual_page(const ProgramText& program) {
  std::string text = fmt::format(
      ".\\\" Made by: limber --man\n.TH LIMBER 1 \"\" \"limber {}\" \"User Commands\"\n.nh\n.ad l\n"
      ".SH NAME\nlimber \\- {}\n.SH SYNOPSIS\n",
      program.version, roff(summary_of(program.program.help)));
  std::vector<std::string> usage;
  for (const CommandText& command : program.commands) usage.push_back(usage_line(command));
  for (const OptionText& option : program.program.options)
    usage.push_back(bold("limber") + " " + option_names(option));
  text += fmt::format("{}\n", fmt::join(usage, "\n.br\n"));
  text += ".SH DESCRIPTION\n" + roff(program.program.help) + "\n" + verbatim(program.program.footer);
  const std::vector<OptionText> shared = shared_options(program);
  text += ".SH COMMANDS\n";
  for (const CommandText& command : program.commands) text += command_section(command, shared);
  text += ".SH SHARED OPTIONS\nThe section of a command names those it has.\n";
  for (const OptionText& option : shared) text += option_entry(option);
  text += ".SH OPTIONS WITHOUT A COMMAND\n";
  for (const OptionText& option : program.program.options) text += option_entry(option);
  return text;
}

}  // namespace limber
