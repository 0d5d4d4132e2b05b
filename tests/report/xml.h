// A checker of well-formed XML, as far as pages use it.
#pragma once

#include <string>
#include <string_view>

namespace limber {

// What is wrong, with the place; empty when `text` is one element with its tags matched, its attributes
// quoted and single, and no stray '<', '&' or control character.
std::string xml_problem(std::string_view text);

// Every "<svg ...>...</svg>" of a page.
struct SvgPart {
  std::string_view text;
  size_t at = 0;
};
SvgPart next_svg(std::string_view page, size_t from);  // empty text at the end

inline bool has(const std::string& page, const std::string& part) {
  return page.find(part) != std::string::npos;
}

}  // namespace limber
