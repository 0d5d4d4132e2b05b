// JSON for anybody: valid whatever the texts and numbers are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace limber {

// With quotes; bytes that are no UTF-8 become U+FFFD.
void append_json_string(std::string& to, std::string_view text);
// The shortest text that reads as the same number. JSON has no NaN and no infinity: they become null.
void append_json_number(std::string& to, float value);
void append_json_number(std::string& to, double value);
void append_json_list(std::string& to, std::span<const int64_t> values);      // [1,2,3]
void append_json_list(std::string& to, std::span<const std::string> values);  // ["a","b"]

}  // namespace limber
