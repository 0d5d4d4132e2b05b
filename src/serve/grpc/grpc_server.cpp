#include "serve/grpc/grpc_server.h"

#include <grpc/support/log.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/file.h"
#include "serve/grpc/calls.h"

namespace limber {
namespace {

constexpr size_t kMaxPemBytes = size_t{1} << 20;  // a chain of certificates has some kilobytes
constexpr int kHandshakeMs = 10000;  // as HttpOptions::head_s: nobody holds a connection without TLS

// "[::1]:8001"
std::string endpoint(const GrpcOptions& options) {
  const bool bare_v6 = options.address.find(':') != std::string::npos && options.address[0] != '[';
  return bare_v6 ? fmt::format("[{}]:{}", options.address, options.port)
                 : fmt::format("{}:{}", options.address, options.port);
}

Result<std::shared_ptr<grpc::ServerCredentials>> make_credentials(const GrpcOptions& options) {
  if (options.certificate.empty()) return grpc::InsecureServerCredentials();
  auto request = GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
  if (!options.client_authority.empty()) request = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  grpc::SslServerCredentialsOptions tls(request);
  LIMBER_ASSIGN(std::string certificate, os_files().read(options.certificate, kMaxPemBytes));
  LIMBER_ASSIGN(std::string key, os_files().read(options.key, kMaxPemBytes));
  tls.pem_key_cert_pairs.push_back({std::move(key), std::move(certificate)});
  if (!options.client_authority.empty()) {
    LIMBER_ASSIGN(tls.pem_root_certs, os_files().read(options.client_authority, kMaxPemBytes));
  }
  return grpc::SslServerCredentials(tls);
}

// gRPC writes a line to stderr for every handshake that a stranger breaks off. What is left is what it says
// before it ends the process; who wants all sets its variable.
void keep_grpc_quiet() {
  if (std::getenv("GRPC_VERBOSITY") != nullptr) return;
  gpr_set_log_function([](gpr_log_func_args* line) {
    if (std::strstr(line->message, "assertion failed") == nullptr) return;
    fmt::print(stderr, "gRPC: {}:{}: {}\n", line->file, line->line, line->message);
  });
}

void set_limits(const GrpcOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  // Its inflating knows no limit: a short message would become one of any length.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  grpc::ResourceQuota quota("limber");
  quota.Resize(options.max_receive_bytes);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_calls_per_connection);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  // Two servers on one port would share its calls and nobody would know.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

}  // namespace

struct GrpcServer::State {
  LoadThread loader;
  std::unique_ptr<grpc::CallbackGenericService> calls;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

Status check(const GrpcOptions& options) {
  if (options.address.empty())
    return invalid("gRPC: no address; an address of this machine such as 127.0.0.1");
  if (options.certificate.empty() != options.key.empty()) {
    return invalid("gRPC: certificate '{}' and key '{}'; TLS needs both", options.certificate, options.key);
  }
  if (!options.client_authority.empty() && options.certificate.empty()) {
    return invalid(
        "gRPC: clients are checked by '{}', but there is no certificate of the server's own; give both",
        options.client_authority);
  }
  const bool visible =
      std::all_of(options.token.begin(), options.token.end(), [](char c) { return c > ' ' && c < 127; });
  if (!visible)
    return invalid("gRPC: the token has spaces or characters beyond ASCII; no client can send it");
  constexpr size_t kMost = std::numeric_limits<int>::max();
  if (options.max_message_bytes < 1 || options.max_message_bytes > kMost) {
    return invalid("gRPC: messages of at most {} bytes; 1 to {}", options.max_message_bytes, kMost);
  }
  if (options.max_receive_bytes < options.max_message_bytes) {
    return invalid("gRPC: {} bytes for all that is received; at least one message of {}",
                   options.max_receive_bytes, options.max_message_bytes);
  }
  if (options.max_calls_per_connection < 1) {
    return invalid("gRPC: {} calls per connection; at least 1", options.max_calls_per_connection);
  }
  return {};
}

GrpcServer::GrpcServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

GrpcServer::~GrpcServer() { stop(0); }

Result<std::unique_ptr<GrpcServer>> GrpcServer::start(const GrpcOptions& options, InferenceService& service) {
  LIMBER_TRY(check(options));
  keep_grpc_quiet();
  LIMBER_ASSIGN(const auto credentials, make_credentials(options));
  auto state = std::make_unique<State>();
  state->calls = make_calls(options, service, state->loader);
  grpc::ServerBuilder builder;
  set_limits(options, builder);
  builder.RegisterCallbackGenericService(state->calls.get());
  builder.AddListeningPort(endpoint(options), credentials, &state->port);
  state->server = builder.BuildAndStart();
  if (state->server == nullptr || state->port == 0) {
    const std::string tls = options.certificate.empty()
                                ? ""
                                : fmt::format(", or certificate '{}' and key '{}' are no PEM or do not fit",
                                              options.certificate, options.key);
    return error(
        Code::kIo,
        "gRPC cannot listen on {}: the port is taken or the address is none of this machine{}; choose "
        "another port or address",
        endpoint(options), tls);
  }
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(state)));
}

int GrpcServer::port() const { return state_->port; }

void GrpcServer::stop(double seconds) {
  if (state_->server == nullptr) return;
  const auto wait = std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e6));
  state_->server->Shutdown(std::chrono::system_clock::now() +
                           std::chrono::duration_cast<std::chrono::system_clock::duration>(wait));
  state_->loader.stop();
  state_->server.reset();
}

}  // namespace limber
