// The bytes of a request up to its body.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "serve/http/message.h"

namespace limber {

// Why a request is refused before its body is read.
struct HttpRefusal {
  int status = 0;  // 0: it is not
  std::string message;
};

// For one request after the other: reset() comes before each.
class HeadParser {
 public:
  // Heads of more than `limit` bytes are refused with 431.
  explicit HeadParser(size_t limit);
  ~HeadParser();

  void reset();
  // `bytes`: all that came and was not used by an earlier call. Gives how many are used; more may be needed
  // unless done() or refusal().status says otherwise.
  size_t put(std::string_view bytes);
  bool done() const;
  const HttpRefusal& refusal() const { return refusal_; }
  // REQUIRES: done()
  HttpHead take_head();

 private:
  size_t parse(std::string_view bytes);

  struct State;
  std::unique_ptr<State> state_;
  HttpRefusal refusal_;
};

}  // namespace limber
