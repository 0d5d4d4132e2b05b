#include "ir/text_lexer.h"

#include <algorithm>
#include <charconv>

#include "ir/text_format.h"

namespace limber::text {

void Lexer::skip_space(bool comments) {
  while (more()) {
    const char c = text_[position_];
    if (c == '#' && comments) {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++position_;
    } else {
      return;
    }
  }
}

char Lexer::peek() {
  skip_space(true);
  return more() ? text_[position_] : '\0';
}

bool Lexer::accept(char c) {
  if (at_end() || text_[position_] != c) return false;
  start_ = position_++;
  return true;
}

Status Lexer::expect(char c) {
  if (accept(c)) return {};
  return expected(fmt::format("'{}'", c));
}

std::string_view Lexer::word() {
  skip_space(true);
  start_ = position_;
  while (more() && is_name_char(text_[position_])) ++position_;
  // ':' belongs to a name only inside it.
  while (position_ > start_ && text_[position_ - 1] == ':') --position_;
  return text_.substr(start_, position_ - start_);
}

bool Lexer::accept_word(std::string_view wanted) {
  const size_t before = position_;
  if (word() == wanted) return true;
  position_ = before;
  return false;
}

std::string_view Lexer::number() {
  skip_space(true);
  start_ = position_;
  while (more() && (is_name_char(text_[position_]) || text_[position_] == '+')) ++position_;
  return text_.substr(start_, position_ - start_);
}

Result<char> Lexer::escape() {
  if (!more()) return fail_at(position_, "expected a character after '\\', found the end of the text");
  const char c = text_[position_++];
  if (c == '"' || c == '\\') return c;
  if (c == 'n') return '\n';
  if (c == 't') return '\t';
  unsigned byte = 0;
  const char* digits = text_.data() + position_;
  const char* end = digits + std::min<size_t>(2, text_.size() - position_);
  if (c != 'x' || std::from_chars(digits, end, byte, 16).ptr != digits + 2) {
    return fail_at(position_ - 1, "expected one of the escapes \\\", \\\\, \\n, \\t, \\xNN");
  }
  position_ += 2;
  return static_cast<char>(byte);
}

Result<std::string> Lexer::quoted() {
  LIMBER_TRY(expect('"'));
  std::string out;
  while (more() && text_[position_] != '"') {
    const char c = text_[position_++];
    if (c == '\n') return fail("the string is not closed on its line; write \\n for a line break");
    if (c != '\\') {
      out += c;
      continue;
    }
    LIMBER_ASSIGN(const char escaped, escape());
    out += escaped;
  }
  if (!more()) return fail("the string is not closed");
  ++position_;
  return out;
}

Result<std::string> Lexer::name(std::string_view what) {
  if (peek() != '"') {
    const std::string_view plain = word();
    if (plain.empty()) return expected(what);
    return std::string(plain);
  }
  LIMBER_ASSIGN(std::string text, quoted());
  if (text.empty()) return fail(fmt::format("expected {}, found an empty one", what));
  return text;
}

bool Lexer::hash_mark_next() {
  skip_space(false);
  return more() && text_[position_] == '#';
}

Result<uint64_t> Lexer::hash_mark() {
  LIMBER_ASSERT(hash_mark_next());
  start_ = position_++;
  uint64_t value = 0;
  const char* begin = text_.data() + position_;
  const auto [end, ec] = std::from_chars(begin, text_.data() + text_.size(), value, 16);
  if (ec != std::errc() || end - begin != 16) return fail("expected 16 hexadecimal digits after '#'");
  position_ += 16;
  return value;
}

Status Lexer::expected(std::string_view what) {
  const char c = peek();
  start_ = position_;
  if (position_ == text_.size()) return fail(fmt::format("expected {}, found the end of the text", what));
  const auto byte = static_cast<unsigned char>(c);
  if (byte < 0x20 || byte >= 0x7f) return fail(fmt::format("expected {}, found byte 0x{:02x}", what, byte));
  return fail(fmt::format("expected {}, found '{}'", what, c));
}

Status Lexer::fail(std::string_view message) const { return fail_at(start_, message); }

Status Lexer::fail_at(size_t position, std::string_view message) const {
  const std::string_view before = text_.substr(0, position);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  const size_t column = newline == std::string_view::npos ? position + 1 : position - newline;
  return corrupt("{}:{}: {}", line, column, message);
}

}  // namespace limber::text
