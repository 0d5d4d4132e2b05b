#include <fmt/core.h>
#include <fmt/ranges.h>

#include <map>

#include "cli/description.h"

namespace limber {
namespace {

// Bash breaks words at '=' and ':'; what follows puts name=file, --option=value and builtin:name together
// again, and gives back what comes after the last break.
constexpr const char* kHead = R"(_limber() {
  local words=() glue='' word
  for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    if [[ ${#words[@]} -gt 0 && $word =~ ^[:=]+$ ]]; then
      words[-1]+=$word glue=1
    elif [[ $glue ]]; then
      words[-1]+=$word glue=''
    else
      words+=("$word")
    fi
  done
  local cur=${words[-1]} prev='' stem='' lead='' command=''
  [[ ${#words[@]} -lt 2 ]] || prev=${words[-2]}
  if [[ $glue ]]; then
    stem=$cur
  else
    stem=${cur%"${COMP_WORDS[COMP_CWORD]}"}
  fi
  for word in "${words[@]:1:${#words[@]}-2}"; do
    if [[ $word != -* ]]; then
      command=$word
      break
    fi
  done
  if [[ $cur == --*=* ]]; then
    prev=${cur%%=*} lead=${cur%%=*}= cur=${cur#*=}
  fi

  local values='' paths=''
)";

constexpr const char* kTail = R"(
  if [[ $paths && $cur == *=* ]]; then
    lead+=${cur%"${cur##*=}"} cur=${cur##*=}
  fi
  local found=()
  [[ -z $values ]] || mapfile -t found < <(compgen -W "$values" -- "$cur")
  if [[ $paths ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t -O "${#found[@]}" found < <(compgen -f -- "$cur")
  fi
  COMPREPLY=()
  for word in "${found[@]}"; do
    word=$lead$word
    COMPREPLY+=("${word#"$stem"}")
  done
}
complete -F _limber limber
)";

// What to do where such a value is expected.
std::string offer(const std::vector<std::string>& values, bool paths) {
  std::string text;
  if (!values.empty())
    text = fmt::format("values={}", shell_quoted(fmt::format("{}", fmt::join(values, " "))));
  if (paths) text += text.empty() ? "paths=1" : " paths=1";
  return text.empty() ? "return" : text;
}

// Of every command and option that something follows; those with the same answer together.
std::string option_cases(const ProgramText& program) {
  std::map<std::string, std::vector<std::string>> by_answer;
  const auto add = [&](const std::string& command, const OptionText& option) {
    if (option.type.empty() || option.positional) return;
    for (const std::string& name : option.names) {
      by_answer[offer(option.values, option.paths)].push_back(fmt::format("'{} {}'", command, name));
    }
  };
  for (const OptionText& option : program.program.options) add("", option);
  for (const CommandText& command : program.commands) {
    for (const OptionText& option : command.options) add(command.name, option);
  }
  std::string text;
  for (const auto& [answer, cases] : by_answer)
    text += fmt::format("    {})\n      {} ;;\n", fmt::join(cases, " | \\\n    "), answer);
  return text;
}

// Options where a word begins with '-', what the command is about elsewhere.
std::string word_case(const CommandText& command, const std::string& name, std::vector<std::string> words) {
  std::vector<std::string> options;
  bool paths = false;
  for (const OptionText& option : command.options) {
    if (!option.positional) {
      options.insert(options.end(), option.names.begin(), option.names.end());
      continue;
    }
    words.insert(words.end(), option.values.begin(), option.values.end());
    paths = paths || option.paths;
  }
  return fmt::format("        '{}') if [[ $cur == -* ]]; then {}; else {}; fi ;;\n", name,
                     offer(options, false), offer(words, paths));
}

}  // namespace

std::string bash_completion(const ProgramText& program) {
  std::vector<std::string> names;
  for (const CommandText& command : program.commands) names.push_back(command.name);
  std::string words = word_case(program.program, "", names);
  for (const CommandText& command : program.commands) words += word_case(command, command.name, {});
  return fmt::format(
      "# bash completion of limber {}, made by: limber --completion bash\n{}  case \"$command $prev\" in\n{}"
      "    *)\n      case $command in\n{}        *) return ;;\n      esac ;;\n  esac\n{}",
      program.version, kHead, option_cases(program), words, kTail);
}

}  // namespace limber
