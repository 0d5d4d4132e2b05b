#include "serve/protocol/base64.h"

#include <array>
#include <cstdint>

namespace limber {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint32_t kNone = 0xff000000;  // survives shifting by 18 and or-ing: any bad character shows

constexpr std::array<uint32_t, 256> make_values() {
  std::array<uint32_t, 256> values{};
  values.fill(kNone);
  for (uint32_t i = 0; i < 64; ++i) values[static_cast<unsigned char>(kAlphabet[i])] = i;
  values['-'] = 62;
  values['_'] = 63;
  return values;
}
constexpr std::array<uint32_t, 256> kValues = make_values();

uint32_t value_of(char c) { return kValues[static_cast<unsigned char>(c)]; }

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes(text.size() / 4 * 3 + (text.size() % 4 == 0 ? 0 : text.size() % 4 - 1), '\0');
  char* out = bytes.data();
  uint32_t bad = 0;
  size_t at = 0;
  for (; at + 4 <= text.size(); at += 4) {
    const uint32_t a = value_of(text[at]), b = value_of(text[at + 1]), c = value_of(text[at + 2]),
                   d = value_of(text[at + 3]);
    bad |= a | b | c | d;
    const uint32_t word = a << 18 | b << 12 | c << 6 | d;
    *out++ = static_cast<char>(word >> 16);
    *out++ = static_cast<char>(word >> 8);
    *out++ = static_cast<char>(word);
  }
  uint32_t word = 0;
  const size_t left = text.size() - at;
  for (size_t i = 0; i < left; ++i) {
    const uint32_t value = value_of(text[at + i]);
    bad |= value;
    word |= value << (18 - 6 * i);
  }
  for (size_t i = 0; i + 1 < left; ++i) *out++ = static_cast<char>(word >> (16 - 8 * i));
  if (bad & kNone) return std::nullopt;
  return bytes;
}

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = bytes.size() - at < 3 ? bytes.size() - at : 3;
    uint32_t word = 0;
    for (size_t i = 0; i < count; ++i)
      word |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (16 - 8 * i);
    for (size_t i = 0; i < 4; ++i) text += i <= count ? kAlphabet[word >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

}  // namespace limber
