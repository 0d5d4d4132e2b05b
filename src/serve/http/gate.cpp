#include "serve/http/gate.h"

#include <openssl/crypto.h>

#include <algorithm>

#include "base/sha256.h"
#include "serve/protocol/base64.h"

namespace limber {

Gate::Gate(std::string_view token) {
  if (!token.empty()) digest_ = Sha256().add(token).hex();
}

bool Gate::admits(std::string_view authorization) const {
  if (digest_.empty()) return true;
  const auto starts_with = [&](std::string_view scheme) {
    return authorization.size() > scheme.size() &&
           std::equal(scheme.begin(), scheme.end(), authorization.begin(),
                      [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); });
  };
  if (starts_with("bearer ")) return is_token(authorization.substr(7));
  if (!starts_with("basic ")) return false;
  const auto pair = decode_base64(authorization.substr(6));
  const size_t colon = pair ? pair->find(':') : std::string::npos;
  return colon != std::string::npos && is_token(std::string_view(*pair).substr(colon + 1));
}

// Digests have one length, so that not even the token's length shows.
bool Gate::is_token(std::string_view text) const {
  const std::string given = Sha256().add(text).hex();
  return given.size() == digest_.size() && CRYPTO_memcmp(given.data(), digest_.data(), given.size()) == 0;
}

}  // namespace limber
