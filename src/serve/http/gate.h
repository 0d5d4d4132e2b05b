#pragma once

#include <string>
#include <string_view>

namespace limber {

// Whether a request may come in: "Authorization: Bearer TOKEN", or as browsers ask people for it, "Basic"
// with any name and the token as the password. How long it takes to say no tells nothing about the token.
class Gate {
 public:
  explicit Gate(std::string_view token);  // empty: everybody may
  bool admits(std::string_view authorization) const;

 private:
  bool is_token(std::string_view text) const;

  std::string digest_;  // of the token; empty: everybody may
};

}  // namespace limber
