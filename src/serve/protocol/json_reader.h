// JSON from strangers, read where it lies: a cursor that is told what to expect. Nothing is built that the
// caller does not ask for, so that 150,000 numbers go straight into their tensor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace limber {

// What a message shows of a value: at most 40 bytes, without line breaks.
std::string excerpt(std::string_view text);

class JsonReader {
 public:
  static constexpr int kMaxDepth = 32;  // of values that are skipped

  // `text` must outlive the reader.
  explicit JsonReader(std::string_view text) : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}

  // The next character that is no white space; 0 at the end.
  char peek() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
    return at_ == end_ ? '\0' : *at_;
  }
  bool take(char c) {
    if (peek() != c || at_ == end_) return false;
    ++at_;
    return true;
  }
  bool done() { return peek() == '\0' && at_ == end_; }

  // Where the cursor stands, to come back to or to parse numbers from; between data() and end().
  const char* data() const { return at_; }
  const char* end() const { return end_; }
  void move_to(const char* at) { at_ = at; }
  std::string_view rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }
  // What stands here, for messages: the value up to the next comma or bracket.
  std::string here();

  // `what` names the value in messages: "inputs[0].name".
  Result<std::string> string(std::string_view what);
  Result<int64_t> integer(std::string_view what);
  Result<bool> boolean(std::string_view what);
  // Checks and passes over any value.
  Status skip(std::string_view what, int depth = kMaxDepth);

  // `member(key)` reads the value of each member of an object.
  template <typename Member>
  Status members(std::string_view what, Member&& member) {
    if (!take('{')) return unexpected(what, "an object");
    if (take('}')) return {};
    do {
      LIMBER_ASSIGN(const std::string key, string(what));
      if (!take(':')) return unexpected(what, "a colon");
      LIMBER_TRY(member(std::string_view(key)));
    } while (take(','));
    if (!take('}')) return unexpected(what, "',' or '}'");
    return {};
  }
  // `element(index)` reads each element of an array.
  template <typename Element>
  Status elements(std::string_view what, Element&& element) {
    if (!take('[')) return unexpected(what, "an array");
    if (take(']')) return {};
    size_t index = 0;
    do {
      LIMBER_TRY(element(index++));
    } while (take(','));
    if (!take(']')) return unexpected(what, "',' or ']'");
    return {};
  }
  // "inputs[0].name: expected a string, found 17 at byte 52"
  Status unexpected(std::string_view what, std::string_view expected);

 private:
  Status escape(std::string_view what, std::string& to);
  Result<uint32_t> hex4(std::string_view what);
  bool skip_number();

  const char* begin_;
  const char* at_;
  const char* end_;
};

}  // namespace limber
