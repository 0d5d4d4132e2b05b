#include "cli/table.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/assert.h"

namespace limber {
namespace {

// Bytes, except that a UTF-8 sequence counts once.
size_t display_width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string shortened(const std::string& text, size_t limit) {
  if (limit == 0 || display_width(text) <= limit) return text;
  constexpr size_t kDots = 2;
  size_t begin = text.size();
  for (size_t kept = 0; kept + kDots < limit && begin > 0; ++kept) {
    do --begin;
    while (begin > 0 && (text[begin] & 0xC0) == 0x80);  // to where the character begins
  }
  return ".." + text.substr(begin);
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

}  // namespace limber
