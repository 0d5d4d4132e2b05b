// Who may ask a server and where it listens: said once, and true of every transport.
#pragma once

#include <string>

#include "serve/grpc/grpc_server.h"
#include "serve/http/http_server.h"

namespace limber {

struct ServeAccess {
  std::string address = "127.0.0.1";  // "0.0.0.0" or "::" for everybody
  // PEM files. With a certificate and its key all connections are TLS.
  std::string certificate, key;
  std::string client_authority;  // who signed the certificates that clients must have; empty: they need none
  std::string token_file;        // its first line is the token that clients must send; empty: they need none
  // Whether the server lives and is ready may be asked without a token and, over HTTP, without a certificate.
  // gRPC ends the handshake of a client without one before it can ask anything.
  bool open_health = false;
};
// Reads no file.
Status check(const ServeAccess& access);

// Fails unless `http` and `grpc` leave all of this to a ServeAccess: what one of them said alone would not be
// true of the other.
Status check_left_to_access(const HttpOptions& http, const GrpcOptions& grpc);

// Reads the token, and makes both transports ask for the same. Fails when a file cannot be what it should.
Status apply(const ServeAccess& access, HttpOptions& http, GrpcOptions& grpc);

// What whoever starts the server should know of who can ask it; empty: nothing.
std::string access_warning(const ServeAccess& access);

}  // namespace limber
