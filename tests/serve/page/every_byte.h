#pragma once

#include <string_view>

namespace limber {

// every_byte.bin: all 256 bytes, then what ends strings and comments in C++ and lists in CMake.
std::string_view every_byte();

}  // namespace limber
