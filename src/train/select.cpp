#include "train/select.h"

#include <fmt/format.h>

#include <algorithm>

namespace limber {
namespace {

constexpr size_t kNamesShown = 8;  // in a message: two lines of a terminal

bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(pattern, name); });
}

std::string show(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kNamesShown);
  return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", "),
                     shown < names.size() ? fmt::format(" and {} more", names.size() - shown) : "");
}

Status check_patterns(const std::vector<std::string>& names, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    const bool used = std::any_of(names.begin(), names.end(),
                                  [&](const std::string& name) { return matches(pattern, name); });
    if (!used) return invalid("pattern '{}' matches no parameter; there are {}", pattern, show(names));
  }
  return {};
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

Result<std::vector<std::string>> select_parameters(const std::vector<std::string>& names,
                                                   const std::vector<std::string>& train,
                                                   const std::vector<std::string>& freeze) {
  LIMBER_TRY(check_patterns(names, train));
  LIMBER_TRY(check_patterns(names, freeze));
  std::vector<std::string> chosen;
  for (const std::string& name : names) {
    if ((train.empty() || matches_any(train, name)) && !matches_any(freeze, name)) chosen.push_back(name);
  }
  if (chosen.empty())
    return invalid("what to train and what to freeze leave no parameter to train; there are {}", show(names));
  return chosen;
}

}  // namespace limber
