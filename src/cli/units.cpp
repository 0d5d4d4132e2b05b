#include "cli/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace limber {
namespace {

// The number at the beginning and what comes behind it; a negative number when there is none.
std::pair<double, std::string_view> split_number(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc()) return {-1, {}};
  return {number, std::string_view(stop, static_cast<size_t>(end - stop))};
}

}  // namespace

std::string parse_bytes(const std::string& text, size_t& to) {
  auto [number, unit] = split_number(text);
  constexpr std::string_view kUnits = "KMG";
  const size_t power = unit.empty() ? 0 : kUnits.find(unit[0]) + 1;
  const bool known = unit.empty() || (unit.size() == 1 && kUnits.find(unit[0]) != std::string_view::npos);
  if (!known || !(number > 0) || number > 1e15)
    return fmt::format("'{}' should be a number of bytes, as in 512M or 2G", text);
  for (size_t i = 0; i < power; ++i) number *= 1024;
  to = static_cast<size_t>(number);
  return {};
}

std::string parse_count(const std::string& text, double& to) {
  constexpr std::array<std::pair<std::string_view, double>, 4> kUnits = {
      {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}}};
  const auto [number, unit] = split_number(text);
  for (const auto& [name, factor] : kUnits) {
    if (unit != name || !(number > 0) || number > 1e15) continue;
    to = number * factor;
    return {};
  }
  return fmt::format("'{}' should be a number, as in 1.5M or 300000", text);
}

std::string parse_seconds(const std::string& text, double& to) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {
      {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"min", 60}, {"h", 3600}}};
  const auto [number, unit] = split_number(text);
  for (const auto& [name, seconds] : kUnits) {
    if (unit != name || !(number > 0) || number > 1e9) continue;
    to = number * seconds;
    return {};
  }
  return fmt::format("'{}' should be a time, as in 90s, 20min or 12ms", text);
}

std::string parse_latency(const std::string& text, double& seconds, double& share) {
  if (!text.ends_with('%')) return parse_seconds(text, seconds);
  double percent = 0;
  const std::string problem = parse_seconds(text.substr(0, text.size() - 1), percent);
  if (!problem.empty() || percent > 100)
    return fmt::format("'{}' should be a share of the original's latency, as in 60%, or a time, as in 12ms",
                       text);
  share = percent / 100;
  return {};
}

}  // namespace limber
