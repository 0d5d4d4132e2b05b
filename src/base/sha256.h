// SHA-256, for what must not be mistaken for anything else. Where damage is all that matters, base/hash.h is
// faster.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace limber {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  // Texts one after the other are not mistaken for one: the length goes in too.
  Sha256& add(std::string_view bytes);
  // 64 hexadecimal digits. Once, at the end.
  std::string hex();

  static bool is_hex(std::string_view text);  // what hex() gives?

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace limber
