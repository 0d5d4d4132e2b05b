// A client that speaks TLS.
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "tests/serve/http/certificates.h"

namespace limber {

// One request over TLS, as a client that trusts `authority` and may have a certificate of its own. Empty: no
// answer came; the connection was refused on either side.
inline std::string tls_exchange(uint16_t port, const Certificate& authority, const Certificate* own,
                                const std::string& text) {
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  SSL_CTX_load_verify_locations(context.get(), authority.certificate_file.c_str(), nullptr);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (own) {
    SSL_CTX_use_certificate(context.get(), own->x509.get());
    SSL_CTX_use_PrivateKey(context.get(), own->key.get());
  }
  const std::unique_ptr<BIO, void (*)(BIO*)> bio(BIO_new_ssl_connect(context.get()), BIO_free_all);
  BIO_set_conn_hostname(bio.get(), ("127.0.0.1:" + std::to_string(port)).c_str());
  std::string answer;
  if (BIO_do_connect(bio.get()) == 1 &&
      BIO_write(bio.get(), text.data(), static_cast<int>(text.size())) > 0) {
    char bytes[4096];
    for (int got; (got = BIO_read(bio.get(), bytes, sizeof bytes)) > 0;)
      answer.append(bytes, static_cast<size_t>(got));
  }
  ERR_clear_error();
  return answer;
}

}  // namespace limber
