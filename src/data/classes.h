// What the openers of data sets share about classes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/dataset.h"

namespace limber {

// All of `text` as a decimal number.
std::optional<int64_t> parse_number(std::string_view text);
// By number when all are numbers, by name otherwise.
void sort_names(ClassNames& names);
// "0", "1" ... "count-1".
ClassNames numbered_classes(int64_t count);
// The names of classes 0..highest: `expected`, or the numbers. Fails when highest is not among them.
Result<ClassNames> classes_up_to(int64_t highest, const ClassNames& expected);
// "'a', 'b', 'c' and 4 more".
std::string quote_some(const std::vector<std::string>& names);

}  // namespace limber
