// A stable 64-bit hash: the same bytes give the same number on every machine and in every release,
// so it may be written to disk.
#pragma once

#include <cstdint>
#include <string_view>

namespace limber {

class Hasher {
 public:
  Hasher& add(std::string_view bytes) { return add_part(bytes).add(static_cast<uint64_t>(bytes.size())); }
  // The same for bytes that come in parts, once add() of their number follows the last.
  Hasher& add_part(std::string_view bytes) {
    for (unsigned char c : bytes) mix(c);
    return *this;
  }
  Hasher& add(uint64_t word) {
    for (int i = 0; i < 8; ++i) mix(static_cast<unsigned char>(word >> (8 * i)));
    return *this;
  }
  uint64_t digest() const { return state_; }

 private:
  void mix(unsigned char c) { state_ = (state_ ^ c) * 0x100000001b3ULL; }  // FNV-1a
  uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace limber
