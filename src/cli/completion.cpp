// Completion of what is typed: the program itself says what may follow, and a few lines for each shell ask
// it.
#include "cli/completion.h"

#include <fmt/core.h>

#include <algorithm>

namespace limber {
namespace {

// Bash breaks words at '=' and ':'; what follows puts name=file, --option=value and builtin:name together
// again, and gives back what comes after the last break.
constexpr const char* kBash = R"(_limber() {
  local words=() glue='' word kind='' found=() lead=''
  for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    if [[ ${#words[@]} -gt 0 && $word =~ ^[:=]+$ ]]; then
      words[-1]+=$word glue=1
    elif [[ $glue ]]; then
      words[-1]+=$word glue=''
    else
      words+=("$word")
    fi
  done
  local cur=${words[-1]} stem=''
  if [[ $glue ]]; then
    stem=$cur
  else
    stem=${cur%"${COMP_WORDS[COMP_CWORD]}"}
  fi
  { read -r kind; mapfile -t found; } < <("${words[0]}" --complete "${words[@]:1}" 2>/dev/null | cut -f1)
  if [[ $kind == files ]]; then
    [[ $cur != *=* ]] || lead=${cur%"${cur##*=}"}
    compopt -o filenames 2>/dev/null
    while read -r word; do found+=("$lead$word"); done < <(compgen -f -- "${cur#"$lead"}")
  fi
  COMPREPLY=()
  for word in "${found[@]}"; do COMPREPLY+=("${word#"$stem"}"); done
}
complete -F _limber limber
)";

constexpr const char* kZsh = R"(_limber() {
  local -a lines=("${(@f)$($words[1] --complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  local -a told=("${(@M)lines[2,-1]:#*$'\t'*}") plain=("${(@)lines[2,-1]:#*$'\t'*}")
  local -i found=1
  told=("${(@)${(@)told//:/\\:}/$'\t'/:}")
  (( $#told )) && _describe -o -t words 'limber' told && found=0
  (( $#plain )) && compadd -- $plain && found=0
  if [[ $lines[1] == files ]]; then
    compset -P '*='
    _files && found=0
  fi
  return found
}
if [[ $funcstack[1] == _limber ]]; then _limber "$@"; else compdef _limber limber; fi
)";

constexpr const char* kFish = R"(function __limber_complete
  set -l lines (limber --complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
  string join -- \n $lines[2..]
  test "$lines[1]" = files; and __fish_complete_path (commandline -ct)
end
complete -c limber -f -a '(__limber_complete)'
)";

const OptionText* find_option(const CommandText& command, const std::string& name) {
  const auto found = std::find_if(command.options.begin(), command.options.end(), [&](const OptionText& one) {
    return !one.positional && std::find(one.names.begin(), one.names.end(), name) != one.names.end();
  });
  return found == command.options.end() || found->type.empty() ? nullptr : &*found;
}

// The command that was named before the last word, or the program. Nothing of one that there is not.
const CommandText* find_command(const ProgramText& program, const std::vector<std::string>& words) {
  const auto end = words.end() - 1;
  const auto name = std::find_if(words.begin(), end, [](const auto& word) { return !word.starts_with('-'); });
  if (name == end) return &program.program;
  const auto found = std::find_if(program.commands.begin(), program.commands.end(),
                                  [&](const CommandText& one) { return one.name == *name; });
  return found == program.commands.end() ? nullptr : &*found;
}

class Offering {
 public:
  explicit Offering(std::string current) : current_(std::move(current)) {}

  void add(const std::string& word, const std::string& help = {}) {
    if (word.starts_with(current_)) out_.words.push_back({word, help});
  }
  void add_values(const OptionText& option, const std::string& before) {
    for (const std::string& value : option.values) add(before + value);
    out_.paths = out_.paths || option.paths;
  }
  Offers take() { return std::move(out_); }

 private:
  const std::string current_;
  Offers out_;
};

}  // namespace

Offers complete(const ProgramText& program, const std::vector<std::string>& words) {
  if (words.empty()) return {};
  const std::string& current = words.back();
  Offering offers(current);
  const CommandText* const command = find_command(program, words);
  if (command == nullptr) return {};
  const size_t equals = current.starts_with("--") ? current.find('=') : std::string::npos;
  if (equals != std::string::npos) {
    if (const OptionText* option = find_option(*command, current.substr(0, equals)))
      offers.add_values(*option, current.substr(0, equals + 1));
    return offers.take();
  }
  if (words.size() > 1) {
    if (const OptionText* option = find_option(*command, words[words.size() - 2])) {
      offers.add_values(*option, "");
      return offers.take();
    }
  }
  for (const OptionText& option : command->options) {
    if (option.positional && !current.starts_with('-')) offers.add_values(option, "");
    if (option.positional || !current.starts_with('-')) continue;
    for (const std::string& name : option.names) offers.add(name, option.help);
  }
  if (command == &program.program) {
    for (const CommandText& one : program.commands) offers.add(one.name, one.help);
  }
  return offers.take();
}

std::string offers_text(const Offers& offers) {
  std::string text = offers.paths ? "files\n" : "words\n";
  for (const Offers::Word& one : offers.words)
    text += one.help.empty() ? one.word + "\n" : fmt::format("{}\t{}\n", one.word, one.help);
  return text;
}

std::string completion_script(std::string_view shell) {
  const char* script = shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish;
  return fmt::format("{}# {} completion of limber, made by: limber --completion {}\n{}",
                     shell == "zsh" ? "#compdef limber\n" : "", shell, shell, script);
}

}  // namespace limber
