#include "jobs/serve_access.h"

#include <algorithm>

#include "base/file.h"

namespace limber {
namespace {

constexpr size_t kMaxTokenBytes = 4096;  // of the file; headers of HTTP carry little more

// A token that some client cannot send would lock that client out, and nobody would know why.
bool can_be_sent(std::string_view token) {
  return std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 127; });
}

Result<std::string> read_token(const std::string& file) {
  auto text = os_files().read(file, kMaxTokenBytes);
  if (!text.ok())
    return error(text.status().code(), "token_file: {}; expected a file whose first line is the token",
                 text.status().message());
  text->resize(std::min(text->size(), text->find_first_of("\r\n")));
  if (text->empty())
    return invalid("{}: is empty; expected a token in the first line, such as 'openssl rand -hex 32' gives",
                   file);
  if (!can_be_sent(*text))
    return invalid("{}: the token has spaces or characters beyond ASCII; no client can send it", file);
  return text;
}

Status check_readable(const char* what, const std::string& file) {
  constexpr size_t kMaxPemBytes = size_t{1} << 20;  // a chain of certificates has some kilobytes
  return file.empty() ? Status() : os_files().read(file, kMaxPemBytes).status().in(what);
}

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

}  // namespace

Status check(const ServeAccess& access) {
  if (access.address.empty()) return invalid("address is empty; expected an IP address, as 127.0.0.1");
  if (access.certificate.empty() != access.key.empty())
    return invalid("certificate is '{}' and key is '{}'; TLS needs both, or give neither", access.certificate,
                   access.key);
  if (!access.client_authority.empty() && access.certificate.empty())
    return invalid(
        "client_authority is '{}', but there is no certificate: clients are known by TLS only; give "
        "certificate and key as well",
        access.client_authority);
  return {};
}

Status check_left_to_access(const HttpOptions& http, const GrpcOptions& grpc) {
  const HttpOptions plain_http;
  const GrpcOptions plain_grpc;
  const bool left = http.address == plain_http.address && http.tls_certificate.empty() &&
                    http.tls_key.empty() && http.tls_client_ca.empty() && http.token.empty() &&
                    http.open_health == plain_http.open_health && grpc.address == plain_grpc.address &&
                    grpc.certificate.empty() && grpc.key.empty() && grpc.client_authority.empty() &&
                    grpc.token.empty() && grpc.open_health == plain_grpc.open_health;
  return left ? Status()
              : invalid("http or grpc say who may ask; expected that in access, which goes for both");
}

Status apply(const ServeAccess& access, HttpOptions& http, GrpcOptions& grpc) {
  LIMBER_TRY(check(access));
  std::string token;
  if (!access.token_file.empty()) {
    LIMBER_ASSIGN(token, read_token(access.token_file));
  }
  LIMBER_TRY(check_readable("certificate", access.certificate));
  LIMBER_TRY(check_readable("key", access.key));
  LIMBER_TRY(check_readable("client_authority", access.client_authority));
  http.address = grpc.address = access.address;
  http.tls_certificate = grpc.certificate = access.certificate;
  http.tls_key = grpc.key = access.key;
  http.tls_client_ca = grpc.client_authority = access.client_authority;
  http.token = grpc.token = token;
  http.open_health = grpc.open_health = access.open_health;
  return {};
}

std::string access_warning(const ServeAccess& access) {
  if (is_loopback(access.address)) return "";
  if (access.token_file.empty() && access.client_authority.empty())
    return fmt::format(
        "everybody who reaches {} may ask, load and unload models; a token or a client certificate keeps "
        "others out",
        access.address);
  if (access.certificate.empty())
    return fmt::format("the token can be read by whoever sees the traffic of {}; a certificate hides it",
                       access.address);
  return "";
}

}  // namespace limber
