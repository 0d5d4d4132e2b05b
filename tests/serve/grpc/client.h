// A server over a fake service, and a client made by gRPC's generator.
#pragma once

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "fake_service.h"
#include "grpc_service.grpc.pb.h"
#include "health.grpc.pb.h"
#include "serve/grpc/grpc_server.h"

namespace limber::testing {

using Stub = inference::GRPCInferenceService::Stub;

// Every call must end, whatever goes wrong.
inline void set_time_limit(grpc::ClientContext& context, int seconds = 60) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(seconds));
}

class GrpcTest : public ::testing::Test {
 protected:
  void start(GrpcOptions options = {}) {
    options.port = 0;
    auto server = GrpcServer::start(options, service);
    ASSERT_TRUE(server.ok()) << server.status().message();
    this->server = *std::move(server);
  }

  std::shared_ptr<grpc::Channel> channel(
      const std::shared_ptr<grpc::ChannelCredentials>& credentials = grpc::InsecureChannelCredentials()) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(server->port()), credentials, arguments);
  }
  std::unique_ptr<Stub> stub() { return inference::GRPCInferenceService::NewStub(channel()); }

  grpc::Status infer(const inference::ModelInferRequest& request, inference::ModelInferResponse& response) {
    grpc::ClientContext context;
    set_time_limit(context);
    return stub()->ModelInfer(&context, request, &response);
  }
  grpc::Status infer(const inference::ModelInferRequest& request) {
    inference::ModelInferResponse response;
    return infer(request, response);
  }

  FakeService service;  // outlives the server
  std::unique_ptr<GrpcServer> server;
};

}  // namespace limber::testing
