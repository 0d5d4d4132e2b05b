#pragma once

#include <cstddef>
#include <string_view>

namespace limber {

// Bytes of the UTF-8 character at the start of `text`; 0 when there is none. REQUIRES: text is not empty
size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace limber
