#include "data/classes.h"

#include <algorithm>
#include <charconv>

namespace limber {

std::optional<int64_t> parse_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void sort_names(ClassNames& names) {
  std::sort(names.begin(), names.end());
  const bool numbers = std::all_of(names.begin(), names.end(), [](const auto& n) { return parse_number(n); });
  if (!numbers) return;
  std::stable_sort(names.begin(), names.end(),
                   [](const auto& a, const auto& b) { return *parse_number(a) < *parse_number(b); });
}

ClassNames numbered_classes(int64_t count) {
  ClassNames names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

Result<ClassNames> classes_up_to(int64_t highest, const ClassNames& expected) {
  if (highest >= kMaxClasses) return corrupt("label {}; labels must be below {}", highest, kMaxClasses);
  if (expected.empty()) return numbered_classes(highest + 1);
  if (highest < static_cast<int64_t>(expected.size())) return expected;
  return invalid("label {}, but there are {} classes ({}), so labels must be in 0..{}", highest,
                 expected.size(), quote_some(expected), expected.size() - 1);
}

std::string quote_some(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", names[i]);
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

}  // namespace limber
