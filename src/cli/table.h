// Tables for people.
#pragma once

#include <string>
#include <vector>

#include "base/show.h"

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

}  // namespace limber
