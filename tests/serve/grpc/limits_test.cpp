// What ends a call early or keeps it from beginning: time, clients that go, stops, sizes, tokens,
// certificates.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "build_request.h"
#include "certificates.h"
#include "client.h"

namespace limber {
namespace {

using testing::four_floats, testing::raw_request, testing::set_time_limit;

class GrpcLimits : public testing::GrpcTest {};

TEST_F(GrpcLimits, TheEarlierOfDeadlineAndTimeoutReachesTheService) {
  start();
  grpc::ClientContext context;
  set_time_limit(context, 1000);
  inference::ModelInferRequest request = four_floats("echo");
  inference::ModelInferResponse response;
  const double before = now_seconds();
  ASSERT_TRUE(stub()->ModelInfer(&context, request, &response).ok());
  InferRequest seen = service.last();
  EXPECT_GE(seen.received, before);
  EXPECT_LE(seen.received, now_seconds());
  EXPECT_GT(seen.deadline, before + 900);
  EXPECT_LT(seen.deadline, now_seconds() + 1100);  // clients send some three digits of it, rounded up

  (*request.mutable_parameters())["timeout"].set_int64_param(500000000);
  grpc::ClientContext again;
  set_time_limit(again, 1000);
  ASSERT_TRUE(stub()->ModelInfer(&again, request, &response).ok());
  seen = service.last();
  EXPECT_DOUBLE_EQ(seen.deadline, seen.received + 500);

  grpc::ClientContext endless;
  ASSERT_TRUE(stub()->ModelInfer(&endless, four_floats("echo"), &response).ok());
  EXPECT_TRUE(std::isinf(service.last().deadline));
}

TEST_F(GrpcLimits, ACallWhoseTimeIsOverEndsThoughTheServiceIsSilent) {
  start();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
  inference::ModelInferResponse response;
  EXPECT_EQ(stub()->ModelInfer(&context, four_floats("hold"), &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  service.release();
  EXPECT_TRUE(infer(four_floats("echo")).ok());
}

TEST_F(GrpcLimits, AClientThatGoesHarmsNobody) {
  start();
  grpc::ClientContext context;
  set_time_limit(context);
  grpc::Status status;
  std::thread client([&] {
    inference::ModelInferResponse response;
    status = stub()->ModelInfer(&context, four_floats("hold"), &response);
  });
  EXPECT_TRUE(service.wait_for_calls(1));
  context.TryCancel();
  client.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  service.release();  // an answer that nobody waits for
  EXPECT_TRUE(infer(four_floats("echo")).ok());
}

TEST_F(GrpcLimits, ClientsThatGoJustWhenTheAnswerComesHarmNobody) {
  start();
  for (int round = 0; round < 50; ++round) {
    grpc::ClientContext context;
    set_time_limit(context);
    const auto client = stub();
    const auto stream = client->ModelStreamInfer(&context);
    ASSERT_TRUE(stream->Write(four_floats("hold")));
    ASSERT_TRUE(service.wait_for_calls(round + 1));
    std::thread gone([&] { context.TryCancel(); });
    service.release();
    gone.join();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_TRUE(infer(four_floats("echo")).ok());
}

TEST_F(GrpcLimits, StopWaitsForCallsUnderWay) {
  start();
  grpc::Status status;
  std::thread client([&] { status = infer(four_floats("hold")); });
  EXPECT_TRUE(service.wait_for_calls(1));
  std::thread answers([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    service.release();
  });
  server->stop(60);
  answers.join();
  client.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_FALSE(infer(four_floats("echo")).ok());
  server->stop(1);  // again
}

TEST_F(GrpcLimits, StopDoesNotWaitForAServiceThatIsSilent) {
  start();
  grpc::Status status;
  std::thread client([&] { status = infer(four_floats("hold")); });
  EXPECT_TRUE(service.wait_for_calls(1));
  server->stop(0);
  client.join();
  EXPECT_FALSE(status.ok());
  server.reset();
  service.release();  // when there is no server any more
}

TEST_F(GrpcLimits, StreamsEndWithTheServer) {
  start();
  grpc::ClientContext context;
  set_time_limit(context);
  const auto client = stub();
  const auto stream = client->ModelStreamInfer(&context);
  ASSERT_TRUE(stream->Write(four_floats("echo")));
  inference::ModelStreamInferResponse response;
  ASSERT_TRUE(stream->Read(&response));
  server->stop(0);
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_FALSE(stream->Finish().ok());
}

TEST_F(GrpcLimits, MessagesThatAreTooLargeAreRefused) {
  GrpcOptions options;
  options.max_message_bytes = 1000;
  start(options);
  EXPECT_TRUE(infer(raw_request("echo", "UINT8", {900}, std::string(900, 'x'))).ok());
  const grpc::Status status = infer(raw_request("echo", "UINT8", {1001}, std::string(1001, 'x')));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_EQ(service.calls(), 1);
}

TEST_F(GrpcLimits, CompressedMessagesAreRefusedBeforeTheyAreInflated) {
  start();
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    set_time_limit(context);
    context.set_compression_algorithm(algorithm);
    inference::ModelInferResponse response;
    const auto request = raw_request("echo", "UINT8", {100000}, std::string(100000, 'x'));
    EXPECT_EQ(stub()->ModelInfer(&context, request, &response).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  }
  EXPECT_EQ(service.calls(), 0);
}

TEST_F(GrpcLimits, OnlyCallsWithTheTokenAreAnswered) {
  GrpcOptions options;
  options.token = "secret-1";
  start(options);
  const auto call = [&](const char* value) {
    grpc::ClientContext context;
    set_time_limit(context);
    if (value != nullptr) context.AddMetadata("authorization", value);
    inference::ModelInferResponse response;
    return stub()->ModelInfer(&context, four_floats("echo"), &response).error_code();
  };
  EXPECT_EQ(call("Bearer secret-1"), grpc::StatusCode::OK);
  for (const char* wrong : {"Bearer secret-2", "Bearer secret-11", "Bearer ", "secret-1", "Basic secret-1"}) {
    EXPECT_EQ(call(wrong), grpc::StatusCode::UNAUTHENTICATED) << wrong;
  }
  EXPECT_EQ(call(nullptr), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(service.calls(), 1);
}

TEST_F(GrpcLimits, HealthNeedsTheTokenUnlessItIsLeftOpen) {
  for (const bool open : {false, true}) {
    GrpcOptions options;
    options.token = "secret-1";
    options.open_health = open;
    start(options);
    // What platforms ask.
    grpc::ClientContext context;
    set_time_limit(context);
    inference::ServerReadyResponse ready;
    EXPECT_EQ(stub()->ServerReady(&context, {}, &ready).error_code(),
              open ? grpc::StatusCode::OK : grpc::StatusCode::UNAUTHENTICATED);
    grpc::ClientContext metadata_context;
    set_time_limit(metadata_context);
    inference::ServerMetadataResponse metadata;
    EXPECT_EQ(stub()->ServerMetadata(&metadata_context, {}, &metadata).error_code(),
              grpc::StatusCode::UNAUTHENTICATED);
  }
}

TEST(GrpcOptions, ThatCannotWorkAreRefused) {
  const auto message = [](auto change) {
    GrpcOptions options;
    change(options);
    return check(options).message();
  };
  EXPECT_EQ(message([](GrpcOptions&) {}), "");
  EXPECT_EQ(message([](GrpcOptions& o) { o.certificate = "c.pem"; }),
            "gRPC: certificate 'c.pem' and key ''; TLS needs both");
  EXPECT_NE(message([](GrpcOptions& o) { o.client_authority = "a.pem"; }), "");
  EXPECT_NE(message([](GrpcOptions& o) { o.token = "with space"; }), "");
  EXPECT_NE(message([](GrpcOptions& o) { o.token = "käse"; }), "");
  EXPECT_NE(message([](GrpcOptions& o) { o.max_message_bytes = 0; }), "");
  EXPECT_NE(message([](GrpcOptions& o) { o.max_message_bytes = size_t{1} << 31; }), "");
  EXPECT_NE(message([](GrpcOptions& o) { o.max_receive_bytes = 1; }), "");
  EXPECT_NE(message([](GrpcOptions& o) { o.max_calls_per_connection = 0; }), "");
  EXPECT_NE(message([](GrpcOptions& o) { o.address = ""; }), "");
}

TEST_F(GrpcLimits, APortThatIsTakenIsAnError) {
  start();
  GrpcOptions options;
  options.port = static_cast<uint16_t>(server->port());
  const auto second = GrpcServer::start(options, service);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kIo);
  EXPECT_NE(second.status().message().find("127.0.0.1:" + std::to_string(server->port())), std::string::npos);
}

class GrpcTls : public testing::GrpcTest {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() /
             (std::string("limber_tls_") + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
              std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    const testing::Identity own = authority.sign("localhost");
    options.certificate = write("server.pem", own.certificate);
    options.key = write("server.key", own.key);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  }

  grpc::Status live(const std::string& roots, const testing::Identity& own = {}) {
    const auto credentials = grpc::SslCredentials({roots, own.key, own.certificate});
    grpc::ClientContext context;
    set_time_limit(context, 20);
    inference::ServerLiveResponse response;
    return inference::GRPCInferenceService::NewStub(channel(credentials))
        ->ServerLive(&context, {}, &response);
  }

  testing::Authority authority;
  GrpcOptions options;
  std::filesystem::path folder;
};

TEST_F(GrpcTls, ClientsThatKnowTheAuthorityConnect) {
  start(options);
  EXPECT_TRUE(live(authority.certificate()).ok());
  EXPECT_EQ(live(testing::Authority().certificate()).error_code(), grpc::StatusCode::UNAVAILABLE);
  grpc::ClientContext plain;
  set_time_limit(plain, 20);
  inference::ServerLiveResponse response;
  EXPECT_EQ(stub()->ServerLive(&plain, {}, &response).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GrpcTls, WithAnAuthorityForClientsOnlyThoseItSignedConnect) {
  const testing::Authority clients;
  options.client_authority = write("clients.pem", clients.certificate());
  start(options);
  EXPECT_TRUE(live(authority.certificate(), clients.sign("friend")).ok());
  EXPECT_EQ(live(authority.certificate()).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(live(authority.certificate(), testing::Authority().sign("stranger")).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GrpcTls, FilesThatAreMissingOrNoPemAreErrors) {
  GrpcOptions missing = options;
  missing.port = 0;
  missing.certificate = (folder / "none.pem").string();
  auto started = GrpcServer::start(missing, service);
  ASSERT_FALSE(started.ok());
  EXPECT_NE(started.status().message().find("none.pem"), std::string::npos);
  GrpcOptions broken = options;
  broken.port = 0;
  broken.certificate = write("broken.pem", "no certificate");
  started = GrpcServer::start(broken, service);
  ASSERT_FALSE(started.ok());
  EXPECT_NE(started.status().message().find("broken.pem"), std::string::npos);
}

}  // namespace
}  // namespace limber
