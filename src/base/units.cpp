#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

namespace limber {
namespace {

// The number at the beginning and what comes behind it.
std::pair<std::optional<double>, std::string_view> split_number(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc()) return {std::nullopt, {}};
  return {number, std::string_view(stop, static_cast<size_t>(end - stop))};
}

}  // namespace

std::optional<double> parse_number(const std::string& text) {
  const auto [number, rest] = split_number(text);
  if (!rest.empty() || !number || !std::isfinite(*number)) return std::nullopt;
  return number;
}

std::vector<double> parse_numbers(const std::string& text) {
  std::vector<double> numbers;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const auto number = parse_number(text.substr(at, end - at));
    if (!number) return {};
    numbers.push_back(*number);
    at = end + 1;
  }
  return numbers;
}

std::optional<int64_t> parse_integer(const std::string& text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem == std::errc() && stop == end && !text.empty()) return value;
  constexpr double kExact = 9007199254740992.0;  // 2^53: every whole number up to it is a double
  const std::optional<double> number = parse_number(text);
  if (!number || std::abs(*number) > kExact || std::trunc(*number) != *number) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::string parse_bytes(const std::string& text, size_t& to) {
  const auto [found, unit] = split_number(text);
  double number = found.value_or(-1);
  constexpr std::string_view kUnits = "KMG";
  const size_t power = unit.empty() ? 0 : kUnits.find(unit[0]) + 1;
  const bool known = unit.empty() || (unit.size() == 1 && kUnits.find(unit[0]) != std::string_view::npos);
  for (size_t i = 0; known && i < power; ++i) number *= 1024;
  if (!known || !(number >= 1) || number > 1e15)
    return fmt::format("'{}' should be a number of bytes, as in 512M or 2G", text);
  to = static_cast<size_t>(number);
  return {};
}

std::string parse_count(const std::string& text, double& to) {
  constexpr std::array<std::pair<std::string_view, double>, 4> kUnits = {
      {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}}};
  const auto [found, unit] = split_number(text);
  const double number = found.value_or(-1);
  for (const auto& [name, factor] : kUnits) {
    if (unit != name || !(number > 0) || number > 1e15) continue;
    to = number * factor;
    return {};
  }
  return fmt::format("'{}' should be a number, as in 1.5M or 300000", text);
}

std::string parse_seconds(const std::string& text, double& to) {
  constexpr std::array<std::pair<std::string_view, double>, 5> kUnits = {
      {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"min", 60}, {"h", 3600}}};
  const auto [found, unit] = split_number(text);
  const double number = found.value_or(-1);
  if (unit.empty() && number > 0)
    return fmt::format("'{}' has no unit; write {}ms, {}s or {}min", text, text, text, text);
  for (const auto& [name, seconds] : kUnits) {
    if (unit != name || !(number > 0) || number > 1e9) continue;
    to = number * seconds;
    return {};
  }
  return fmt::format("'{}' should be a time, as in 90s, 20min or 12ms", text);
}

std::string parse_share(const std::string& text, double& to) {
  const bool has_unit = text.ends_with('%');
  const double percent = has_unit ? parse_number(text.substr(0, text.size() - 1)).value_or(-1) : -1;
  if (!(percent > 0) || percent > 100)
    return fmt::format("'{}' should be a share above 0 and up to 100%, as in 25%", text);
  to = percent / 100;
  return {};
}

std::string parse_latency(const std::string& text, double& seconds, double& share) {
  if (!text.ends_with('%')) return parse_seconds(text, seconds);
  if (parse_share(text, share).empty()) return {};
  return fmt::format("'{}' should be a share of the original's latency, as in 60%, or a time, as in 12ms",
                     text);
}

}  // namespace limber
