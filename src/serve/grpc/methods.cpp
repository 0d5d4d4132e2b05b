#include "serve/grpc/methods.h"

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>
#include <grpcpp/support/status.h>

#include <limits>

#include "grpc_service.pb.h"
#include "health.pb.h"
#include "serve/grpc/messages.h"

namespace limber {
namespace {

using grpc::ByteBuffer;

ServeStatus server_live(const InferenceService& service, const inference::ServerLiveRequest&,
                        inference::ServerLiveResponse& to) {
  to.set_live(service.live());
  return {};
}

ServeStatus server_ready(const InferenceService& service, const inference::ServerReadyRequest&,
                         inference::ServerReadyResponse& to) {
  to.set_ready(service.ready());
  return {};
}

// A model that is not there is not ready: clients ask this in a loop until it is.
ServeStatus model_ready(const InferenceService& service, const inference::ModelReadyRequest& asked,
                        inference::ModelReadyResponse& to) {
  const ServeStatus status = service.model_ready(asked.name(), asked.version());
  to.set_ready(status.ok());
  const bool answer =
      status.ok() || status.refusal == Refusal::kNotFound || status.refusal == Refusal::kUnavailable;
  return answer ? ServeStatus() : status;
}

ServeStatus server_metadata(const InferenceService& service, const inference::ServerMetadataRequest&,
                            inference::ServerMetadataResponse& to) {
  const ServerMetadata metadata = service.server();
  to.set_name(metadata.name);
  to.set_version(metadata.version);
  to.mutable_extensions()->Add(metadata.extensions.begin(), metadata.extensions.end());
  return {};
}

ServeStatus model_metadata(const InferenceService& service, const inference::ModelMetadataRequest& asked,
                           inference::ModelMetadataResponse& to) {
  ModelMetadata metadata;
  const ServeStatus status = service.metadata(asked.name(), asked.version(), metadata);
  if (status.ok()) write_model_metadata(metadata, to);
  return status;
}

ServeStatus repository_index(const InferenceService& service, const inference::RepositoryIndexRequest& asked,
                             inference::RepositoryIndexResponse& to) {
  for (const RepositoryEntry& entry : service.index(asked.ready())) {
    auto& model = *to.add_models();
    model.set_name(entry.name);
    model.set_version(entry.version);
    model.set_state(entry.state);
    model.set_reason(entry.reason);
  }
  return {};
}

ServeStatus health_check(const InferenceService& service, const grpc::health::v1::HealthCheckRequest& asked,
                         grpc::health::v1::HealthCheckResponse& to) {
  using grpc::health::v1::HealthCheckResponse;
  if (!asked.service().empty() && asked.service() != "inference.GRPCInferenceService") {
    return {Refusal::kNotFound,
            fmt::format("service '{:.60}'; it is inference.GRPCInferenceService, or empty", asked.service())};
  }
  to.set_status(service.ready() ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
  return {};
}

template <typename Request, typename Response,
          ServeStatus (*kMethod)(const InferenceService&, const Request&, Response&)>
ServeStatus quick(const InferenceService& service, ByteBuffer& in, ByteBuffer& out) {
  Request request;
  if (ServeStatus status = parse_message(in, request); !status.ok()) return status;
  Response response;
  if (ServeStatus status = kMethod(service, request, response); !status.ok()) return status;
  return serialize_message(response, out);
}

struct QuickRow {
  std::string_view path;
  bool health;  // asks for nothing but whether the server lives and is ready
  QuickMethod method;
};

using namespace inference;  // the names of messages, for this table
using grpc::health::v1::HealthCheckRequest, grpc::health::v1::HealthCheckResponse;
constexpr QuickRow kQuick[] = {
    {"/inference.GRPCInferenceService/ServerLive", true,
     quick<ServerLiveRequest, ServerLiveResponse, server_live>},
    {"/inference.GRPCInferenceService/ServerReady", true,
     quick<ServerReadyRequest, ServerReadyResponse, server_ready>},
    {"/inference.GRPCInferenceService/ModelReady", false,
     quick<ModelReadyRequest, ModelReadyResponse, model_ready>},
    {"/inference.GRPCInferenceService/ServerMetadata", false,
     quick<ServerMetadataRequest, ServerMetadataResponse, server_metadata>},
    {"/inference.GRPCInferenceService/ModelMetadata", false,
     quick<ModelMetadataRequest, ModelMetadataResponse, model_metadata>},
    {"/inference.GRPCInferenceService/RepositoryIndex", false,
     quick<RepositoryIndexRequest, RepositoryIndexResponse, repository_index>},
    {"/grpc.health.v1.Health/Check", true, quick<HealthCheckRequest, HealthCheckResponse, health_check>},
};

const QuickRow* find_row(std::string_view path) {
  for (const QuickRow& row : kQuick) {
    if (row.path == path) return &row;
  }
  return nullptr;
}

grpc::StatusCode grpc_code(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNone:
      return grpc::StatusCode::OK;
    case Refusal::kBadRequest:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case Refusal::kNotFound:
      return grpc::StatusCode::NOT_FOUND;
    case Refusal::kTooLarge:
    case Refusal::kOverloaded:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case Refusal::kUnavailable:
      return grpc::StatusCode::UNAVAILABLE;
    case Refusal::kTooLate:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case Refusal::kInternal:
      return grpc::StatusCode::INTERNAL;
  }
  return grpc::StatusCode::INTERNAL;
}

}  // namespace

ServeStatus bad_request(const Status& status) { return {Refusal::kBadRequest, status.message()}; }

ServeStatus parse_message(ByteBuffer& bytes, google::protobuf::Message& to) {
  {
    grpc::ProtoBufferReader reader(&bytes);
    const Status sound = check_message(reader, *to.GetDescriptor());
    if (!sound.ok()) return bad_request(sound);
  }
  grpc::ProtoBufferReader reader(&bytes);
  const bool parsed = to.ParseFromZeroCopyStream(&reader);
  bytes.Clear();
  if (parsed) return {};
  return bad_request(invalid("the bytes are no {}", to.GetDescriptor()->full_name()));
}

ServeStatus serialize_message(const google::protobuf::Message& message, ByteBuffer& to) {
  const size_t bytes = message.ByteSizeLong();
  bool own = false;
  to.Clear();  // gRPC insists on it
  if (bytes <= static_cast<size_t>(std::numeric_limits<int>::max()) &&
      grpc::GenericSerialize<grpc::ProtoBufferWriter, google::protobuf::Message>(message, &to, &own).ok()) {
    return {};
  }
  return {Refusal::kInternal,
          fmt::format("an answer of {} bytes; gRPC carries less than 2 GiB, ask for less", bytes)};
}

grpc::Status grpc_status(const ServeStatus& status) {
  return grpc::Status(grpc_code(status.refusal), fmt::format("{:.500}", status.message));
}

QuickMethod find_quick_method(std::string_view path) {
  const QuickRow* row = find_row(path);
  return row != nullptr ? row->method : nullptr;
}

bool is_health_method(std::string_view path) {
  const QuickRow* row = find_row(path);
  return row != nullptr && row->health;
}

}  // namespace limber
