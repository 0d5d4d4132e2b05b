// An HTTP/1.1 server in front of an InferenceService: routes of the Open Inference Protocol, metrics, the
// live page. docs/protocol.md says what clients see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "serve/http/message.h"
#include "serve/service.h"

namespace limber {

struct HttpOptions {
  std::string address = "127.0.0.1";  // "0.0.0.0" or "::" for everybody
  uint16_t port = 8000;               // 0: any that is free
  int metrics_port = -1;              // a port for /metrics alone; 0: any that is free; -1: none
  int io_threads = 1;                 // which also read and write JSON

  size_t max_connections = 4096;         // more are told 503 and closed
  size_t max_head_bytes = 16 << 10;      // 431
  size_t max_body_bytes = 64 << 20;      // 413
  size_t max_bytes_in_flight = 1 << 30;  // bodies of all connections; 503

  // Seconds until a connection is given up.
  double idle_s = 60;  // between two requests
  double head_s = 10;  // from the first byte of a request to the end of its head; also TLS' handshake
  double body_s = 30;  // for a body, and for a client to take an answer, beside what slow_bytes_per_s gives
  double slow_bytes_per_s = 64 << 10;  // the slowest client that is waited for

  // Empty: plain HTTP. PEM files.
  std::string tls_certificate, tls_key;
  std::string tls_client_ca;  // who signed the certificates that clients must have; empty: they need none
  std::string token;          // clients must send "Authorization: Bearer TOKEN"; empty: they need none
  bool open_health = false;   // /v2/health/live and ready answer to everybody, also with a token or client_ca

  bool debug = false;  // POST /v2/limber/variant {"model": .., "variant": ..} makes a variant active

  std::function<void(const HttpAccess&)> access_log;  // from the I/O threads; must not block
};

Status check(const HttpOptions& options);

class HttpServer {
 public:
  // Listens when it returns. `service` must outlive the server.
  static Result<std::unique_ptr<HttpServer>> start(HttpOptions options, InferenceService& service);
  ~HttpServer();  // stop(0)
  HttpServer(const HttpServer&) = delete;

  uint16_t port() const;
  uint16_t metrics_port() const;  // 0: none
  size_t connections() const;     // that are open; from any thread

  // Takes no more connections and no more requests, lets those be answered that came, and closes what is left
  // after `seconds`. The service may be destroyed afterwards once it has called every `done`: what it calls
  // later is harmless. Not from an I/O thread.
  void stop(double seconds);

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace limber
