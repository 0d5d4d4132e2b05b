// Tables and numbers for people.
#pragma once

#include <string>
#include <vector>

namespace limber {

struct Column {
  std::string title;
  bool right = false;  // numbers
  size_t limit = 0;    // longer text keeps its end, after ".."; 0: no limit
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row);  // REQUIRES: as many cells as columns
  std::string text() const;                // with a header line, no trailing spaces

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::string show_seconds(double seconds);  // "12.3 us", "4.56 ms", "1.2 s"
std::string show_bytes(double bytes);      // "1.5 MiB"
std::string show_count(double count);      // "3.50 M"
std::string show_rate(double per_second);  // the number of G per second: "123.4"
std::string show_percent(double fraction);

}  // namespace limber
