#include "cli/arguments.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <system_error>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/description.h"
#include "cli/say.h"
#include "jobs/engine.h"
#include "jobs/version.h"

namespace limber {
namespace {

// Messages keep what is allowed; the help says it in words.
CLI::Validator quiet(CLI::Validator validator) { return validator.description(""); }

void set_need(CLI::Option* option, Arguments::Need need) {
  option->required(need == Arguments::Need::kRequired);
}

void set_log_level(const std::string& level) {
  auto logger = spdlog::stderr_logger_st("limber");
  logger->set_pattern("%Y-%m-%dT%H:%M:%SZ %l %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

// Jobs know no command line and name an option in parentheses: "(size)", "(dim T=NUMBER)". Whoever typed a
// command that has such an option reads it as it is typed.
std::string with_dashes(const std::string& message, const CLI::App& command) {
  std::string text;
  for (size_t at = 0; at < message.size();) {
    const size_t begin = std::min(message.find('(', at), message.size() - 1) + 1;
    text.append(message, at, begin - at);
    at = begin;
    const size_t end =
        std::min(message.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", begin), message.size());
    const size_t close = message.find(')', end);
    if (end == begin || close == std::string::npos) continue;
    const std::string_view rest = std::string_view(message).substr(end, close - end);
    const bool alone = rest.empty() || (rest.front() == ' ' && rest.find('=') != std::string_view::npos);
    const std::string name = "--" + message.substr(begin, end - begin);
    if (alone && command.get_option_no_throw(name) != nullptr) text += "--";
  }
  return text;
}

int report(const Status& status, const CLI::App& command) {
  say("limber: error: {}\n", with_dashes(status.message(), command));
  return status.code() == Code::kUnsupported ? kExitUnsupported : kExitFailed;
}

// What was printed but not written, as on a full disk, is an outcome that nobody has.
int report_lost(const std::string& why) {
  say("limber: error: what was printed could not be written: {}\n", why);
  return kExitFailed;
}

// The options of a command as they are typed.
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Of arguments that nothing takes: what is wrong with the first, and what may have been meant.
std::string describe_extras(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen[0];
  const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  const auto option = std::find_if(extras.begin(), extras.end(),
                                   [](const std::string& text) { return text.starts_with("-"); });
  if (option == extras.end()) return fmt::format("'{}' is one argument too many", extras.at(0));
  const std::string name = option->substr(0, option->find('='));
  const std::string near = closest(name, option_names(command));
  return fmt::format("'limber{}' has no option {}.{}", chosen.empty() ? "" : " " + command.get_name(), name,
                     near.empty() ? "" : fmt::format(" Did you mean {}?", near));
}

// CLI11 throws for --help and --version too: those are not errors.
int report_parse(const CLI::App& app, const CLI::ParseError& problem) {
  if (problem.get_exit_code() == 0) return app.exit(problem);
  const bool extras = dynamic_cast<const CLI::ExtrasError*>(&problem) != nullptr;
  const auto chosen = app.get_subcommands();
  say("limber: error: {}\nlimber: see 'limber {} --help'\n", extras ? describe_extras(app) : problem.what(),
      chosen.empty() ? "COMMAND" : chosen[0]->get_name());
  return kExitUsage;
}

// What is wrong with the text, or nothing.
template <typename T>
std::string take_integer(const std::string& text, int64_t low, int64_t high, T& to) {
  const std::optional<int64_t> value = parse_integer(text);
  if (!value || *value < low || *value > high)
    return fmt::format("'{}' should be a whole number from {} to {}", text, low, high);
  to = static_cast<T>(*value);
  return {};
}

template <typename T>
std::string take_number(const std::string& text, double low, double high, T& to) {
  const std::optional<double> value = parse_number(text);
  if (!value || *value < low || *value > high)
    return fmt::format("'{}' should be a number from {:g} to {:g}", text, low, high);
  to = *value;
  return {};
}

}  // namespace

void Arguments::text(const char* names, std::string& to, const char* type, const char* help, Need need) {
  set_need(app_->add_option(names, to, help)->type_name(type), need);
}

void Arguments::texts(const char* names, std::vector<std::string>& to, const char* type, const char* help,
                      Need need) {
  set_need(app_->add_option(names, to, help)->type_name(type), need);
}

void Arguments::one(const char* names, const char* help, Parse take) {
  const std::string full = names,
                    name = full.substr(full.find("--") == std::string::npos ? 0 : full.find("--"));
  const auto set = [name, take = std::move(take)](const std::string& text) {
    if (const std::string problem = take(text); !problem.empty()) throw CLI::ValidationError(name, problem);
  };
  app_->add_option_function<std::string>(names, set, help)->type_name("N");
}

void Arguments::number(const char* names, int& to, int low, int high, const char* help) {
  one(names, help, [&to, low, high](const std::string& text) { return take_integer(text, low, high, to); });
}

void Arguments::number(const char* names, int64_t& to, int64_t low, int64_t high, const char* help) {
  one(names, help, [&to, low, high](const std::string& text) { return take_integer(text, low, high, to); });
}

void Arguments::number(const char* names, double& to, double low, double high, const char* help) {
  one(names, help, [&to, low, high](const std::string& text) { return take_number(text, low, high, to); });
}

void Arguments::number(const char* names, std::optional<double>& to, double low, double high,
                       const char* help) {
  one(names, help, [&to, low, high](const std::string& text) { return take_number(text, low, high, to); });
}

void Arguments::seed(const char* names, uint64_t& to, const char* help) {
  one(names, help, [&to](const std::string& text) -> std::string {
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, to);
    if (problem == std::errc() && stop == end) return {};
    return fmt::format("'{}' should be a whole number from 0 to {}", text, UINT64_MAX);
  });
}

void Arguments::flag(const char* names, bool& to, const char* help) { app_->add_flag(names, to, help); }

void Arguments::choice(const char* names, std::string& to, std::vector<std::string> values,
                       const char* help) {
  const std::string type = fmt::format("{}", fmt::join(values, "|"));
  app_->add_option(names, to, help)
      ->check(quiet(CLI::IsMember(std::move(values))).name(kChoiceName))
      ->type_name(type);
}

void Arguments::choice(const char* names, std::vector<std::string> values, const char* help,
                       const std::function<void(size_t)>& take) {
  const std::string type = fmt::format("{}", fmt::join(values, "|"));
  const auto set = [values, take](const std::string& text) {
    take(static_cast<size_t>(std::find(values.begin(), values.end(), text) - values.begin()));
  };
  app_->add_option_function<std::string>(names, set, help)
      ->check(quiet(CLI::IsMember(values)).name(kChoiceName))
      ->type_name(type);
}

void Arguments::parsed(const char* names, const char* type, const char* help, Parse parse) {
  auto each = [names = std::string(names), parse = std::move(parse)](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      if (const std::string problem = parse(text); !problem.empty())
        throw CLI::ValidationError(names, problem);
    }
  };
  app_->add_option_function<std::vector<std::string>>(names, std::move(each), help)
      ->type_name(type)
      ->expected(1)
      ->take_all();
}

void Arguments::footer(const char* text) { app_->footer(text); }

Status parse_words(const std::vector<std::string>& words, const std::function<void(Arguments&)>& declare) {
  CLI::App app;
  Arguments arguments(&app);
  declare(arguments);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes them from the back
  } catch (const CLI::ParseError& problem) {
    return invalid("'{}': {}", fmt::join(words, " "), problem.what());
  }
  return {};
}

CommandLine::CommandLine()
    : app_(std::make_unique<CLI::App>("Limber makes neural networks elastic on the machine that runs them.",
                                      "limber")) {
  app_->set_version_flag("--version", version_text, "Version, build, operator sets, kernels, CPU");
  add_description_options(*app_);
  app_->require_subcommand(1);
  app_->footer(
      "MODEL is an ONNX file, the folder of a training or of a checkpoint, or builtin:resnet8,\n"
      "builtin:resnet14, builtin:mobilenet, builtin:vit.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 unsupported operator.");
}

CommandLine::~CommandLine() = default;

Arguments CommandLine::add(const char* name, const char* help, Action action) {
  CLI::App* command = app_->add_subcommand(name, help)->group(group_);
  command->callback([this, action = std::move(action)] { chosen_ = action; });
  commands_.emplace_back(name);
  return Arguments(command);
}

std::string CommandLine::overview() const {
  std::string text = fmt::format("{}\n\nusage: limber COMMAND [options]\n", app_->get_description()), group;
  for (const CLI::App* command : app_->get_subcommands({})) {
    if (command->get_group() != group) text += fmt::format("\n{}:\n", command->get_group());
    group = command->get_group();
    text += fmt::format("  {:<10}{}\n", command->get_name(), command->get_description());
  }
  return text +
         "\nFor example, what a model of yours is made of and how fast it runs here:\n"
         "  limber inspect model.onnx\n"
         "  limber bench model.onnx\n"
         "\nNew here? 'limber demo' tells the whole story on built-in data, in minutes.\n\n";
}

// What was printed must have arrived: a disk may be full when the last of it leaves the buffer.
int CommandLine::run(int argc, char** argv) {
  try {
    const int code = run_command(argc, argv);
    errno = 0;
    std::cout.flush();
    const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
    if (written || code != kExitDone) return code;
    // What failed before left no reason.
    return report_lost(errno == 0 ? "standard output failed" : std::generic_category().message(errno));
  } catch (const std::system_error& problem) {  // of fmt, when the buffer is full: nothing else throws
    return report_lost(problem.code().message());
  }
}

int CommandLine::run_command(int argc, char** argv) {
  if (argc < 2) {
    say("{}", overview());
    return usage_error(invalid("which command? 'limber COMMAND --help' explains one"));
  }
  if (argv[1][0] != '-' && std::find(commands_.begin(), commands_.end(), argv[1]) == commands_.end()) {
    return usage_error(no_such("command", argv[1], commands_));
  }
  for (CLI::App* command : app_->get_subcommands({})) {
    Arguments(command).choice("--log-level", log_level_, {"trace", "debug", "info", "warn", "error", "off"},
                              "What goes to stderr; default warn");
  }
  if (argv[1] == kCompleteOption) {  // of the scripts, which pass words that are no options of this call
    fmt::print("{}", offers_text(complete(describe(*app_), {argv + 2, argv + argc})));
    return kExitDone;
  }
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return report_parse(*app_, problem);
  }
  set_log_level(log_level_);
  const Result<int> outcome = chosen_();
  return outcome.ok() ? *outcome : report(outcome.status(), *app_->get_subcommands()[0]);
}

int usage_error(const Status& status) {
  say("limber: error: {}\n", status.message());
  return kExitUsage;
}

}  // namespace limber
