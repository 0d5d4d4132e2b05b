#include "serve/http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace limber {
namespace {

// The oldest error of OpenSSL on this thread; forgets the others.
std::string openssl_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  char text[256] = "unknown reason";
  if (code != 0) ERR_error_string_n(code, text, sizeof text);
  return text;
}

Status tls_failure(const std::string& file, std::string_view expected) {
  return invalid("{}: {} ({})", file, expected, openssl_error());
}

// A key with a password is refused: nobody is there to be asked.
int no_password(char*, int, int, void*) { return 0; }

}  // namespace

void FreeTlsContext::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

Result<TlsContext> make_tls_context(const HttpOptions& options) {
  ERR_clear_error();
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (!context) return error(Code::kInternal, "TLS: {}", openssl_error());
  SSL_CTX* tls = context.get();
  SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
  SSL_CTX_set_options(tls, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(tls, no_password);
  constexpr unsigned char kSessions[] = "limber";
  SSL_CTX_set_session_id_context(tls, kSessions, sizeof kSessions - 1);
  if (SSL_CTX_use_certificate_chain_file(tls, options.tls_certificate.c_str()) != 1)
    return tls_failure(options.tls_certificate, "expected a certificate in PEM");
  if (SSL_CTX_use_PrivateKey_file(tls, options.tls_key.c_str(), SSL_FILETYPE_PEM) != 1)
    return tls_failure(options.tls_key, "expected the certificate's private key in PEM, without a password");
  if (SSL_CTX_check_private_key(tls) != 1)
    return tls_failure(options.tls_key, "expected the key that belongs to " + options.tls_certificate);
  if (options.tls_client_ca.empty()) return context;
  if (SSL_CTX_load_verify_locations(tls, options.tls_client_ca.c_str(), nullptr) != 1)
    return tls_failure(options.tls_client_ca, "expected certificates in PEM");
  SSL_CTX_set_client_CA_list(tls, SSL_load_client_CA_file(options.tls_client_ca.c_str()));
  SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, nullptr);
  return context;
}

}  // namespace limber
