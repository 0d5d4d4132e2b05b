#include "base/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/assert.h"

namespace limber {
namespace {

constexpr size_t kBytes = 32;

// Fails only when there is no memory, or in a program whose OpenSSL was told to allow no SHA-256.
void check(int rc) { LIMBER_ASSERT(rc == 1); }

}  // namespace

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  check(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr));
}
Sha256::~Sha256() = default;

Sha256& Sha256::add(std::string_view bytes) {
  std::array<unsigned char, 8> length;
  for (size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<unsigned char>(static_cast<uint64_t>(bytes.size()) >> (8 * i));
  check(EVP_DigestUpdate(state_->context, length.data(), length.size()));
  check(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()));
  return *this;
}

std::string Sha256::hex() {
  std::array<unsigned char, kBytes> digest;
  check(EVP_DigestFinal_ex(state_->context, digest.data(), nullptr));
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool Sha256::is_hex(std::string_view text) {
  return text.size() == 2 * kBytes && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace limber
