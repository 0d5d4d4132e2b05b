// The server's gRPC side: the Open Inference Protocol (proto/grpc_service.proto) over an InferenceService.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "serve/service.h"

namespace limber {

struct GrpcOptions {
  std::string address = "127.0.0.1";  // "0.0.0.0", "::" for every network
  uint16_t port = 8001;               // 0: any that is free
  // Files in PEM format. With a certificate and its key calls come by TLS; with an authority only from
  // clients that show a certificate it signed.
  std::string certificate, key, client_authority;
  std::string token;  // calls must carry the metadata `authorization: Bearer TOKEN`; empty: they need none
  bool open_health = false;  // whether the server is alive and ready may be asked without the token
  size_t max_message_bytes = size_t{64} << 20;  // of one request
  // For all that clients send and that no call has taken yet; when it is used up, reading waits.
  size_t max_receive_bytes = size_t{512} << 20;
  int max_calls_per_connection = 256;  // at the same time; more wait at the client's
};

Status check(const GrpcOptions& options);

// Answers from gRPC's own threads, few however many calls there are: no thread waits for an answer. Loading
// and unloading models has one thread, one after the other. Use from one thread.
class GrpcServer {
 public:
  // Accepts calls when it returns. The service must outlive the server; answers that it still gives when the
  // server is gone are dropped. kInvalidArgument for options that cannot work, kIo when it cannot listen.
  static Result<std::unique_ptr<GrpcServer>> start(const GrpcOptions& options, InferenceService& service);
  ~GrpcServer();  // stop(0)
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  int port() const;

  // Takes no new calls and waits up to `seconds` for those under way; then they are cancelled. A model that
  // is just being loaded is waited for in any case. May be called again.
  void stop(double seconds);

 private:
  struct State;
  explicit GrpcServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace limber
