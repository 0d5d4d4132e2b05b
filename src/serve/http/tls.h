#pragma once

#include <memory>

#include "base/status.h"
#include "serve/http/http_server.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace limber {

struct FreeTlsContext {
  void operator()(ssl_ctx_st* context) const;
};
using TlsContext = std::unique_ptr<ssl_ctx_st, FreeTlsContext>;

// TLS 1.2 and newer with the certificate, key and client CA of the options; the error names the file. With a
// client CA a client's certificate is asked for and checked; a client that has none is let in, to be told
// 401.
Result<TlsContext> make_tls_context(const HttpOptions& options);

}  // namespace limber
