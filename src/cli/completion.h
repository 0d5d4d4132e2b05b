// What a shell offers while a command is typed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/description.h"

namespace limber {

struct Offers {
  struct Word {
    std::string word, help;
  };
  std::vector<Word> words;
  bool paths = false;  // files and folders as well
};

// What the last of `words` may become, which are those after the program's name as far as they are typed.
Offers complete(const ProgramText& program, const std::vector<std::string>& words);
// For the scripts: "files" or "words" in the first line, then a word a line, with its help behind a tab.
std::string offers_text(const Offers& offers);

// What makes a shell ask `limber --complete WORD...`: "bash", "zsh" or "fish".
inline constexpr std::string_view kCompleteOption = "--complete";
std::string completion_script(std::string_view shell);

}  // namespace limber
