#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace limber {

// RFC 4648, with or without '=' at the end, in the ordinary or the URL alphabet; nullopt when `text` is none.
std::optional<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);  // ordinary alphabet, with '='

}  // namespace limber
