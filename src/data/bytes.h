// Numbers in files that come from outside. REQUIRES (all): the bytes are there
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace limber {

using FileSpan = std::span<const std::byte>;

inline uint32_t byte_at(FileSpan bytes, size_t at) { return static_cast<uint32_t>(bytes[at]); }
inline uint32_t little16(FileSpan b, size_t at) { return byte_at(b, at) | byte_at(b, at + 1) << 8; }
inline uint32_t little32(FileSpan b, size_t at) { return little16(b, at) | little16(b, at + 2) << 16; }
inline uint32_t big16(FileSpan b, size_t at) { return byte_at(b, at) << 8 | byte_at(b, at + 1); }
inline uint32_t big32(FileSpan b, size_t at) { return big16(b, at) << 16 | big16(b, at + 2); }

}  // namespace limber
