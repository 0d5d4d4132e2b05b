// Arithmetic on bytes that are pixels.
#pragma once

#include <algorithm>
#include <cstdint>

namespace limber {

// ITU-R 601. REQUIRES: three bytes
inline float luma(const uint8_t* rgb) {
  return 0.299F * static_cast<float>(rgb[0]) + 0.587F * static_cast<float>(rgb[1]) +
         0.114F * static_cast<float>(rgb[2]);
}

// Rounded, and kept within a byte.
inline uint8_t to_byte(float value) { return static_cast<uint8_t>(std::clamp(value + 0.5F, 0.F, 255.F)); }

}  // namespace limber
