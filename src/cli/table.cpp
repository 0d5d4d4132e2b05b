#include "cli/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace limber {
namespace {

// Bytes, except that a UTF-8 sequence counts once.
size_t display_width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string shortened(const std::string& text, size_t limit) {
  if (limit == 0 || text.size() <= limit) return text;
  return fmt::format("..{}", std::string_view(text).substr(text.size() - (limit - 2)));
}

std::string scaled(double value, double base, const char* const* units, int count) {
  int unit = 0;
  while (unit + 1 < count && std::abs(value) >= base) value /= base, ++unit;
  const int digits = unit == 0 || std::abs(value) >= 100 ? 0 : std::abs(value) >= 10 ? 1 : 2;
  return fmt::format("{:.{}f}{}", value, digits, units[unit]);
}

}  // namespace

void Table::add(std::vector<std::string> row) {
  LIMBER_ASSERT(row.size() == columns_.size());
  for (size_t i = 0; i < row.size(); ++i) row[i] = shortened(row[i], columns_[i].limit);
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(display_width(column.title));
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string out;
  auto line = [&](auto cell) {
    std::string text;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string content = cell(i);
      const std::string space(widths[i] - display_width(content), ' ');
      if (i > 0) text += "  ";
      text += columns_[i].right ? space + content : content + space;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  };
  line([&](size_t i) { return columns_[i].title; });
  line([&](size_t i) { return std::string(widths[i], '-'); });
  for (const auto& row : rows_) line([&](size_t i) { return row[i]; });
  return out;
}

std::string show_seconds(double seconds) {
  if (seconds < 999.5e-6) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.{}f} ms", seconds * 1e3, seconds < 0.01 ? 3 : 2);
  return fmt::format("{:.2f} s", seconds);
}

std::string show_bytes(double bytes) {
  static constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  return scaled(bytes, 1024, kUnits, 5);
}

std::string show_count(double count) {
  static constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  return scaled(count, 1000, kUnits, 5);
}

std::string show_rate(double per_second) {
  const double giga = per_second / 1e9;
  return fmt::format("{:.{}f}", giga, giga >= 100 ? 0 : giga >= 10 ? 1 : 2);
}

std::string show_percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }

}  // namespace limber
