#include "record/records.h"

#include <algorithm>

namespace limber {

std::string not_seconds(std::string_view name, double value) {
  return value >= 0 ? "" : fmt::format("'{}' should be a number of seconds", name);
}

std::string RunHeader::problem() const {
  if (version <= kRecordVersion) return "";
  return fmt::format("version {} is newer than this program reads ({}); update Limber", version,
                     kRecordVersion);
}

std::string EpochRecord::problem() const { return not_seconds("seconds", seconds); }

std::string SelectionRecord::problem() const {
  if (importance.empty()) return "'importance' is empty";
  if (std::adjacent_find(chosen.begin(), chosen.end(), std::greater_equal<>()) != chosen.end())
    return "'chosen' should be ascending";
  if (chosen.empty() || chosen.back() < importance.size()) return "";
  return fmt::format("chooses tensor {} of {}", chosen.back(), importance.size());
}

std::string ChoiceRecord::problem() const {
  const std::string problem = not_seconds("predicted_s", predicted_s);
  return problem.empty() ? not_seconds("measured_s", measured_s) : problem;
}

}  // namespace limber
