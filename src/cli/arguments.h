// The command line: what is declared, parsed and reported. Wraps CLI11, which no other header names.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace CLI {
class App;
}

namespace limber {

// Exit codes, documented in docs/exit-codes.md.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitUnsupported = 3;

// The options of one command. Names are as CLI11 takes them: "-o,--output", "--batch", "model" for a
// positional. The variables must outlive parsing.
class Arguments {
 public:
  enum class Need : uint8_t { kOptional, kRequired };

  void text(const char* names, std::string& to, const char* type, const char* help,
            Need need = Need::kOptional);
  void texts(const char* names, std::vector<std::string>& to, const char* type, const char* help,
             Need need = Need::kOptional);
  void number(const char* names, int& to, int low, int high, const char* help);
  void number(const char* names, int64_t& to, int64_t low, int64_t high, const char* help);
  void number(const char* names, double& to, double low, double high, const char* help);
  void number(const char* names, std::optional<double>& to, double low, double high, const char* help);
  void seed(const char* names, uint64_t& to, const char* help);
  void flag(const char* names, bool& to, const char* help);
  void choice(const char* names, std::string& to, std::vector<std::string> values, const char* help);
  // The same with a meaning for each text.
  template <typename T>
  void choice(const char* names, T& to, std::vector<std::pair<const char*, T>> values, const char* help) {
    std::vector<std::string> texts;
    for (const auto& [text, meaning] : values) texts.emplace_back(text);
    choice(names, std::move(texts), help, [&to, values](size_t chosen) { to = values[chosen].second; });
  }
  // May be given several times. `parse` gets each text and says what is wrong with it, or nothing.
  using Parse = std::function<std::string(const std::string& text)>;
  void parsed(const char* names, const char* type, const char* help, Parse parse);
  // Stands below the options in the help.
  void footer(const char* text);

 private:
  // `take` gets the text of the last one given and says what is wrong with it, or nothing.
  void one(const char* names, const char* help, Parse take);
  void choice(const char* names, std::vector<std::string> values, const char* help,
              const std::function<void(size_t)>& take);
  friend class CommandLine;
  friend Status parse_words(const std::vector<std::string>& words,
                            const std::function<void(Arguments&)>& declare);
  explicit Arguments(CLI::App* app) : app_(app) {}
  CLI::App* app_;
};

// Reads options from words as they are typed after the name of a command. kInvalidArgument says what is
// wrong.
Status parse_words(const std::vector<std::string>& words, const std::function<void(Arguments&)>& declare);

class CommandLine {
 public:
  CommandLine();
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // An exit code when the command got as far as that; a Status otherwise.
  using Action = std::function<Result<int>()>;
  Arguments add(const char* name, const char* help, Action action);
  // The heading in the help of the commands that are added from now on.
  void group(const char* heading) { group_ = heading; }
  // Parses, runs the chosen command, prints what went wrong, and gives the exit code. Output that could not
  // be written is a failure.
  int run(int argc, char** argv);

 private:
  int run_command(int argc, char** argv);
  std::string overview() const;

  std::unique_ptr<CLI::App> app_;
  std::string group_ = "Commands";
  std::string log_level_ = "warn";
  std::vector<std::string> commands_;
  Action chosen_;
};

// Prints "limber: error: ..." and gives kExitUsage: for what only shows once the model is known.
int usage_error(const Status& status);

}  // namespace limber
