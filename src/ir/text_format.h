// What the printer and the parser of the text form must agree on. Only text_*.cpp include this.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tensor/tensor.h"

namespace limber::text {

inline constexpr int64_t kMaxInlineElements = 64;  // larger constants are printed as their hash

constexpr bool is_name_char(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == ':' || c == '/' || c == '-';
}

// May stand without quotes. A ':' at the end would read as the one before the type.
inline bool is_bare_name(std::string_view name) {
  for (const char c : name) {
    if (!is_name_char(c)) return false;
  }
  return !name.empty() && name.back() != ':';
}

// With quotes; control characters, quotes and backslashes are escaped.
std::string quoted(std::string_view text);

// Over type and bytes, as printed after '#'.
uint64_t constant_hash(const Tensor& tensor);

}  // namespace limber::text
