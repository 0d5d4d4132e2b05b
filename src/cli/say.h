// Lines for people, on stderr.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace limber {

// Where fmt::print() throws it goes on: that nobody can read what is said, as in a log on a full disk or on a
// terminal that was closed, is no reason to lose the work that it is about.
template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace limber
