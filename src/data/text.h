#pragma once

#include <string>
#include <string_view>

namespace limber {

// ASCII letters only: names of files and columns.
inline std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

}  // namespace limber
