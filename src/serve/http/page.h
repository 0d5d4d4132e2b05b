// The live page, which the server shows at "/".
#pragma once

#include <string_view>

namespace limber {

// web/live.html, byte by byte: one file that needs no other. It asks v2/limber/status, relative to where it
// lies, once a second. Where it may not be seen without a token, browsers ask for it.
std::string_view live_page();

}  // namespace limber
