// Every call, over a socket.
#include <grpcpp/impl/client_unary_call.h>
#include <gtest/gtest.h>

#include "build_request.h"
#include "client.h"

namespace limber {
namespace {

using testing::add_input, testing::four_floats, testing::raw_bytes, testing::raw_request,
    testing::set_time_limit, testing::with_length;

class GrpcServerTest : public testing::GrpcTest {
 protected:
  void SetUp() override { start(); }

  // Calls `method` of the stub and gives its answer.
  template <typename Response, typename Request>
  Response ask(grpc::Status (testing::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
               const Request& request, grpc::StatusCode expected = grpc::StatusCode::OK,
               std::string* message = nullptr) {
    grpc::ClientContext context;
    set_time_limit(context);
    Response response;
    const grpc::Status status = ((*stub()).*method)(&context, request, &response);
    EXPECT_EQ(status.error_code(), expected) << status.error_message();
    if (message != nullptr) *message = status.error_message();
    return response;
  }
};

TEST_F(GrpcServerTest, SaysWhetherItLivesAndIsReady) {
  EXPECT_TRUE(ask(&testing::Stub::ServerLive, inference::ServerLiveRequest()).live());
  EXPECT_TRUE(ask(&testing::Stub::ServerReady, inference::ServerReadyRequest()).ready());
  service.is_ready = false;
  EXPECT_FALSE(ask(&testing::Stub::ServerReady, inference::ServerReadyRequest()).ready());
}

TEST_F(GrpcServerTest, AModelThatIsNotThereIsNotReadyRatherThanAnError) {
  inference::ModelReadyRequest request;
  request.set_name("echo");
  EXPECT_TRUE(ask(&testing::Stub::ModelReady, request).ready());
  request.set_version("9");
  EXPECT_FALSE(ask(&testing::Stub::ModelReady, request).ready());
  request.set_version("");
  request.set_name("cold");
  EXPECT_FALSE(ask(&testing::Stub::ModelReady, request).ready());
  request.set_name("broken");
  ask(&testing::Stub::ModelReady, request, grpc::StatusCode::INTERNAL);
}

TEST_F(GrpcServerTest, DescribesItselfAndItsModels) {
  const auto server = ask(&testing::Stub::ServerMetadata, inference::ServerMetadataRequest());
  EXPECT_EQ(server.name(), "limber");
  EXPECT_EQ(server.version(), "1.2.3");
  EXPECT_EQ(server.extensions(0), "model_repository");
  inference::ModelMetadataRequest request;
  request.set_name("images");
  const auto model = ask(&testing::Stub::ModelMetadata, request);
  EXPECT_EQ(model.name(), "images");
  EXPECT_EQ(model.platform(), "limber_elastic");
  EXPECT_EQ(model.versions_size(), 2);
  ASSERT_EQ(model.inputs_size(), 2);
  EXPECT_EQ(model.inputs(0).name(), "image");
  EXPECT_EQ(model.inputs(0).datatype(), "FP32");
  EXPECT_EQ(model.inputs(0).shape(0), -1);
  EXPECT_EQ(model.outputs(0).datatype(), "INT64");
  std::string message;
  request.set_name("nothing");
  ask(&testing::Stub::ModelMetadata, request, grpc::StatusCode::NOT_FOUND, &message);
  EXPECT_EQ(message, "no model 'nothing'");
}

TEST_F(GrpcServerTest, ListsLoadsAndUnloadsModels) {
  inference::RepositoryIndexRequest index;
  EXPECT_EQ(ask(&testing::Stub::RepositoryIndex, index).models_size(), 2);
  index.set_ready(true);
  const auto ready = ask(&testing::Stub::RepositoryIndex, index);
  ASSERT_EQ(ready.models_size(), 1);
  EXPECT_EQ(ready.models(0).name(), "echo");
  EXPECT_EQ(ready.models(0).state(), "READY");
  inference::RepositoryModelLoadRequest load;
  load.set_model_name("a");
  ask(&testing::Stub::RepositoryModelLoad, load);
  inference::RepositoryModelUnloadRequest unload;
  unload.set_model_name("a");
  ask(&testing::Stub::RepositoryModelUnload, unload);
  load.set_model_name("missing");
  ask(&testing::Stub::RepositoryModelLoad, load, grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(service.changes(), (std::vector<std::string>{"load a", "unload a", "load missing"}));
  load.clear_model_name();
  ask(&testing::Stub::RepositoryModelLoad, load, grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(GrpcServerTest, AnswersHealthChecksOfPlatforms) {
  const auto health = grpc::health::v1::Health::NewStub(channel());
  using grpc::health::v1::HealthCheckResponse;
  const auto check = [&](const std::string& name, HealthCheckResponse& response) {
    grpc::ClientContext context;
    set_time_limit(context);
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(name);
    return health->Check(&context, request, &response).error_code();
  };
  HealthCheckResponse response;
  EXPECT_EQ(check("", response), grpc::StatusCode::OK);
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  service.is_ready = false;
  EXPECT_EQ(check("inference.GRPCInferenceService", response), grpc::StatusCode::OK);
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(check("other", response), grpc::StatusCode::NOT_FOUND);
}

TEST_F(GrpcServerTest, NumbersComeBackAsTheyWereSent) {
  for (const auto& [datatype, size] : std::vector<std::pair<std::string, int64_t>>{{"BOOL", 1},
                                                                                   {"UINT8", 1},
                                                                                   {"UINT16", 2},
                                                                                   {"UINT32", 4},
                                                                                   {"UINT64", 8},
                                                                                   {"INT8", 1},
                                                                                   {"INT16", 2},
                                                                                   {"INT32", 4},
                                                                                   {"INT64", 8},
                                                                                   {"FP16", 2},
                                                                                   {"BF16", 2},
                                                                                   {"FP32", 4},
                                                                                   {"FP64", 8}}) {
    std::string raw(static_cast<size_t>(3 * size), '\1');
    raw[0] = '\0';
    inference::ModelInferRequest request = raw_request("echo", datatype, {3, 1}, raw);
    request.set_id("seven");
    inference::ModelInferResponse response;
    const grpc::Status status = infer(request, response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(response.outputs_size(), 1);
    EXPECT_EQ(response.outputs(0).name(), "image");
    EXPECT_EQ(response.outputs(0).datatype(), datatype);
    EXPECT_EQ(response.outputs(0).shape(0), 3);
    EXPECT_EQ(response.outputs(0).shape(1), 1);
    EXPECT_EQ(response.raw_output_contents(0), raw);
    EXPECT_EQ(response.model_version(), "2");
    EXPECT_EQ(response.id(), "seven");
    EXPECT_EQ(response.parameters().at("variant").string_param(), "original");
  }
}

TEST_F(GrpcServerTest, AMegabyteAndMoreThanOneInputArrive) {
  std::vector<float> many(1 << 18);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(i);
  inference::ModelInferRequest request = raw_request("echo", "FP32", {1 << 18}, raw_bytes(many));
  add_input(request, "other", "UINT8", {2});
  request.add_raw_input_contents("ab");
  inference::ModelInferResponse response;
  const grpc::Status status = infer(request, response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.raw_output_contents(0), raw_bytes(many));
  EXPECT_EQ(response.raw_output_contents(1), "ab");
}

TEST_F(GrpcServerTest, EncodedImagesReachTheModelThatTakesThem) {
  inference::ModelInferRequest request =
      raw_request("images", "BYTES", {2}, with_length("abc") + with_length("de"));
  inference::ModelInferResponse response;
  const grpc::Status status = infer(request, response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.raw_output_contents(0), raw_bytes<int64_t>({3, 2}));
  EXPECT_EQ(service.last().inputs.at(0).images.at(1), "de");
  request.set_model_name("echo");
  EXPECT_EQ(infer(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_model_name("nothing");
  EXPECT_EQ(infer(request).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(GrpcServerTest, MalformedRequestsNeverReachTheService) {
  const grpc::Status status = infer(raw_request("echo", "FP32", {2}, "1"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "inputs[0] 'image': raw_input_contents of 1 bytes; FP32 of shape [2] has 8");
  EXPECT_EQ(service.calls(), 0);
}

TEST_F(GrpcServerTest, EveryRefusalHasItsStatus) {
  using grpc::StatusCode;
  for (const auto& [refusal, code] :
       std::vector<std::pair<Refusal, StatusCode>>{{Refusal::kBadRequest, StatusCode::INVALID_ARGUMENT},
                                                   {Refusal::kNotFound, StatusCode::NOT_FOUND},
                                                   {Refusal::kTooLarge, StatusCode::RESOURCE_EXHAUSTED},
                                                   {Refusal::kOverloaded, StatusCode::RESOURCE_EXHAUSTED},
                                                   {Refusal::kUnavailable, StatusCode::UNAVAILABLE},
                                                   {Refusal::kTooLate, StatusCode::DEADLINE_EXCEEDED},
                                                   {Refusal::kInternal, StatusCode::INTERNAL}}) {
    service.refusal = {refusal, refusal_name(refusal)};
    const grpc::Status status = infer(four_floats("refuse"));
    EXPECT_EQ(status.error_code(), code);
    EXPECT_EQ(status.error_message(), refusal_name(refusal));
  }
}

TEST_F(GrpcServerTest, AnOverloadedServerSaysWhenToComeBack) {
  service.refusal = {Refusal::kOverloaded, "queue full", 0.25};
  grpc::ClientContext context;
  set_time_limit(context);
  inference::ModelInferResponse response;
  EXPECT_EQ(stub()->ModelInfer(&context, four_floats("refuse"), &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  const auto& trailers = context.GetServerTrailingMetadata();
  ASSERT_EQ(trailers.count("retry-after"), 1u);
  EXPECT_EQ(trailers.find("retry-after")->second, "0.25");
  ASSERT_EQ(trailers.count("grpc-retry-pushback-ms"), 1u);
  EXPECT_EQ(trailers.find("grpc-retry-pushback-ms")->second, "250");
}

TEST_F(GrpcServerTest, LongMessagesStillFitIntoAStatus) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "ü";
  service.refusal = {Refusal::kBadRequest, text};
  const grpc::Status status = infer(four_floats("refuse"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), text.substr(0, 1000));
}

TEST_F(GrpcServerTest, AStreamAnswersEachRequestInOrderAndOutlivesRefusals) {
  grpc::ClientContext context;
  set_time_limit(context);
  const auto client = stub();
  const auto stream = client->ModelStreamInfer(&context);
  inference::ModelInferRequest requests[3] = {four_floats("echo"), four_floats("nothing"),
                                              four_floats("echo")};
  requests[2].set_id("third");
  for (const auto& request : requests) ASSERT_TRUE(stream->Write(request));
  stream->WritesDone();
  inference::ModelStreamInferResponse responses[3];
  for (auto& response : responses) ASSERT_TRUE(stream->Read(&response));
  inference::ModelStreamInferResponse none;
  EXPECT_FALSE(stream->Read(&none));
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(responses[0].error_message(), "");
  EXPECT_EQ(responses[0].infer_response().raw_output_contents(0), raw_bytes<float>({1, 2, 3, 4}));
  EXPECT_EQ(responses[1].error_message(), "not_found: no model 'nothing'");
  EXPECT_EQ(responses[2].error_message(), "");
  EXPECT_EQ(responses[2].infer_response().id(), "third");
}

TEST_F(GrpcServerTest, CallsThatAreNotOfferedAreUnimplemented) {
  const grpc::internal::RpcMethod method("/inference.GRPCInferenceService/ModelStatistics",
                                         grpc::internal::RpcMethod::NORMAL_RPC);
  grpc::ClientContext context;
  set_time_limit(context);
  inference::ModelReadyRequest request;
  inference::ModelReadyResponse response;
  const grpc::Status status =
      grpc::internal::BlockingUnaryCall(channel().get(), method, &context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_NE(status.error_message().find("ModelStatistics"), std::string::npos);
}

TEST_F(GrpcServerTest, MessagesMadeToCostMemoryAreRefused) {
  inference::ModelInferRequest request = four_floats("echo");
  for (int i = 0; i < 100000; ++i) request.add_outputs();
  const grpc::Status status = infer(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("more than 65536 strings and messages"), std::string::npos);
}

}  // namespace
}  // namespace limber
