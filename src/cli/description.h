// The program's commands and options as plain data, for its manual page and the completion of shells.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace limber {

struct OptionText {
  std::vector<std::string> names;  // as typed: "-o", "--output"; of a positional its type, "MODEL"
  std::string type;                // what follows it: "FILE", "cpu|ref"; empty for a flag
  std::string help;
  std::vector<std::string> values;  // worth offering; all there are when it does not take paths
  bool paths = false;
  bool positional = false;
  bool required = false;
  bool repeats = false;

  bool operator==(const OptionText&) const = default;
};

struct CommandText {
  std::string name;
  std::string help;
  std::string footer;  // lines to be kept as they are
  std::vector<OptionText> options;
};

struct ProgramText {
  std::string version;
  CommandText program;  // options that stand alone, as --version
  std::vector<CommandText> commands;
};

// Validators of options with a fixed set of values have this name; their type is then "a|b|c".
inline constexpr const char* kChoiceName = "choice";

ProgramText describe(CLI::App& app);

// For man(1), in roff.
std::string manual_page(const ProgramText& program);

// Options --completion SHELL and --man: print and end, as --version does.
void add_description_options(CLI::App& app);

}  // namespace limber
