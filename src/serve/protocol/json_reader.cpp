#include "serve/protocol/json_reader.h"

#include <charconv>
#include <cstring>

#include "serve/protocol/utf8.h"

namespace limber {
namespace {

constexpr size_t kExcerpt = 40;  // bytes of a stranger's text that a message shows: it stays one line

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& to, uint32_t code) {
  const auto put = [&to](uint32_t byte) { to += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6), put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18), put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  }
}

// The first byte of a string that is not an ordinary character, or `end`.
const char* plain_end(const char* at, const char* end) {
  while (at != end && *at != '"' && *at != '\\' && static_cast<unsigned char>(*at) >= 0x20) ++at;
  return at;
}

}  // namespace

std::string excerpt(std::string_view text) {
  std::string shown(text.substr(0, kExcerpt));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text.size() > kExcerpt ? shown + "..." : shown;
}

std::string JsonReader::here() {
  if (done()) return "the end";
  const char* stop = at_ + 1;
  while (stop != end_ && !std::strchr(",]}\n", *stop) && stop - at_ <= static_cast<long>(kExcerpt)) ++stop;
  return excerpt({at_, static_cast<size_t>(stop - at_)});
}

Status JsonReader::unexpected(std::string_view what, std::string_view expected) {
  const std::string found = here();
  return invalid("{}: expected {}, found {} at byte {}", what, expected, found, at_ - begin_);
}

Result<std::string> JsonReader::string(std::string_view what) {
  if (!take('"')) return unexpected(what, "a string");
  std::string value;
  while (true) {
    const char* stop = plain_end(at_, end_);
    value.append(at_, stop);
    at_ = stop;
    if (at_ == end_) return invalid("{}: the text ends within a string", what);
    if (*at_ == '"') {
      ++at_;
      if (!is_utf8(value)) return invalid("{}: a string is no UTF-8", what);
      return value;
    }
    if (*at_ != '\\') return invalid("{}: a string holds the control character {}", what, int{*at_});
    ++at_;
    LIMBER_TRY(escape(what, value));
  }
}

Status JsonReader::escape(std::string_view what, std::string& to) {
  constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
  const char kind = at_ == end_ ? '\0' : *at_++;
  if (const size_t i = kNames.find(kind); kind && i != kNames.npos) {
    to += kValues[i];
    return {};
  }
  if (kind != 'u') return invalid("{}: unknown escape '\\{}' in a string", what, excerpt({&kind, 1}));
  LIMBER_ASSIGN(uint32_t code, hex4(what));
  if (code >= 0xd800 && code < 0xdc00) {
    if (end_ - at_ < 6 || at_[0] != '\\' || at_[1] != 'u')
      return invalid("{}: half a surrogate pair in a string", what);
    at_ += 2;
    LIMBER_ASSIGN(const uint32_t low, hex4(what));
    if (low < 0xdc00 || low >= 0xe000) return invalid("{}: half a surrogate pair in a string", what);
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xdc00 && code < 0xe000) {
    return invalid("{}: half a surrogate pair in a string", what);
  }
  append_utf8(to, code);
  return {};
}

Result<uint32_t> JsonReader::hex4(std::string_view what) {
  uint32_t code = 0;
  const char* stop = at_ + (end_ - at_ < 4 ? end_ - at_ : 4);
  const auto [after, error] = std::from_chars(at_, stop, code, 16);
  if (error != std::errc() || after != at_ + 4) return invalid("{}: \\u needs four hexadecimal digits", what);
  at_ = after;
  return code;
}

Result<int64_t> JsonReader::integer(std::string_view what) {
  peek();
  int64_t value = 0;
  const auto [after, error] = std::from_chars(at_, end_, value);
  const bool whole = after == end_ || !std::strchr(".eE0123456789", *after) || *after == '\0';
  if (error != std::errc() || !whole) return unexpected(what, "a whole number of at most 64 bits");
  at_ = after;
  return value;
}

Result<bool> JsonReader::boolean(std::string_view what) {
  peek();
  if (rest().starts_with("true")) return at_ += 4, true;
  if (rest().starts_with("false")) return at_ += 5, false;
  return unexpected(what, "true or false");
}

bool JsonReader::skip_number() {
  const char* start = at_;
  if (at_ != end_ && *at_ == '-') ++at_;
  if (at_ == end_ || !is_digit(*at_)) return at_ = start, false;
  while (at_ != end_ &&
         (is_digit(*at_) || *at_ == '.' || *at_ == 'e' || *at_ == 'E' || *at_ == '+' || *at_ == '-'))
    ++at_;
  return true;
}

Status JsonReader::skip(std::string_view what, int depth) {
  if (depth == 0) return invalid("{}: nested more than {} deep", what, kMaxDepth);
  switch (peek()) {
    case '{':
      return members(what, [&](std::string_view) { return skip(what, depth - 1); });
    case '[':
      return elements(what, [&](size_t) { return skip(what, depth - 1); });
    case '"':
      return string(what).status();
    default:
      break;
  }
  for (const std::string_view word : {"true", "false", "null"}) {
    if (rest().starts_with(word)) return at_ += word.size(), Status();
  }
  return skip_number() ? Status() : unexpected(what, "a value");
}

}  // namespace limber
