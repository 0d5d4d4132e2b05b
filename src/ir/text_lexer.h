// Characters and words of the text form, with positions for messages. Reads untrusted text: never
// looks past its end. Only text_*.cpp include this.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace limber::text {

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  // The next character that is neither white space nor part of a comment, '\0' at the end.
  char peek();
  bool at_end() { return peek(), position_ == text_.size(); }
  // Takes `c` when it comes next.
  bool accept(char c);
  Status expect(char c);

  // A run of name characters; empty when there is none.
  std::string_view word();
  // A run of name characters and '+'; empty when there is none. Numbers and dimensions.
  std::string_view number();
  Result<std::string> quoted();
  // Takes `word` when it comes next.
  bool accept_word(std::string_view word);
  // A word or a quoted string, not empty. `what` says what it names.
  Result<std::string> name(std::string_view what);
  // Whether '#' comes next, where it starts no comment.
  bool hash_mark_next();
  // The number after it. REQUIRES: hash_mark_next()
  Result<uint64_t> hash_mark();

  // "line:column: expected <what>, found <what is there>".
  Status expected(std::string_view what);
  // "line:column: <message>", at the start of the word or character read last.
  Status fail(std::string_view message) const;

 private:
  bool more() const { return position_ < text_.size(); }
  void skip_space(bool comments);
  Status fail_at(size_t position, std::string_view message) const;
  Result<char> escape();

  std::string_view text_;
  size_t position_ = 0;
  size_t start_ = 0;  // of what was read last
};

}  // namespace limber::text
