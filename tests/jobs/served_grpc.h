// A gRPC client of a server in the test's own process, and a server that must not come up.
#pragma once

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "grpc_service.grpc.pb.h"
#include "tests/jobs/served.h"

namespace limber::test {

class GrpcClient {
 public:
  explicit GrpcClient(int port, const std::shared_ptr<grpc::ChannelCredentials>& credentials =
                                    grpc::InsecureChannelCredentials()) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    stub_ = inference::GRPCInferenceService::NewStub(
        grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port), credentials, arguments));
  }
  grpc::Status infer(const inference::ModelInferRequest& request, inference::ModelInferResponse& response) {
    grpc::ClientContext context;
    prepare(context);
    return stub_->ModelInfer(&context, request, &response);
  }
  grpc::StatusCode metadata() {
    grpc::ClientContext context;
    prepare(context);
    inference::ServerMetadataResponse response;
    return stub_->ServerMetadata(&context, {}, &response).error_code();
  }
  grpc::StatusCode live() {
    grpc::ClientContext context;
    prepare(context);
    inference::ServerLiveResponse response;
    return stub_->ServerLive(&context, {}, &response).error_code();
  }
  std::string token;

 private:
  void prepare(grpc::ClientContext& context) const {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  }
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

// The same numbers as `http` sends.
inline inference::ModelInferRequest grpc_request(const std::string& model, const ServedInput& input,
                                                 const BinaryRequest& http) {
  inference::ModelInferRequest request;
  request.set_model_name(model);
  auto& tensor = *request.add_inputs();
  tensor.set_name(input.name);
  tensor.set_datatype("FP32");
  tensor.mutable_shape()->Add(input.shape.begin(), input.shape.end());
  request.add_raw_input_contents(http.body.substr(http.body.size() - input.elements * sizeof(float)));
  return request;
}

// What run_serve() says to options that it must refuse before anything is loaded.
inline std::string refused_options(const ServeJobOptions& job) {
  Listener listener;
  const auto outcome = run_serve(job, listener.control(), [](const Serving&) { ADD_FAILURE() << "serves"; });
  EXPECT_FALSE(outcome.ok());
  EXPECT_TRUE(listener.shares.empty()) << listener.stage;
  return outcome.status().message();
}

}  // namespace limber::test
