// Calls that are answered at once, and what all calls share: messages in and out of gRPC's bytes, and its
// statuses.
#pragma once

#include <string_view>

#include "serve/service.h"

namespace google::protobuf {
class Message;
}
namespace grpc {
class ByteBuffer;
class Status;
}  // namespace grpc

namespace limber {

// Untrusted: parses what check_message lets through, and frees the bytes.
ServeStatus parse_message(grpc::ByteBuffer& bytes, google::protobuf::Message& to);
ServeStatus serialize_message(const google::protobuf::Message& message, grpc::ByteBuffer& to);

// As service.h lists them; long messages are cut, because a status must fit into a header.
grpc::Status grpc_status(const ServeStatus& status);
ServeStatus bad_request(const Status& status);

using QuickMethod = ServeStatus (*)(const InferenceService& service, grpc::ByteBuffer& in,
                                    grpc::ByteBuffer& out);

// The call named "/package.Service/Method", or null when it is none of those that are answered at once.
QuickMethod find_quick_method(std::string_view path);
// Tells no more than that the server is there: may be left open to who has no token.
bool is_health_method(std::string_view path);

}  // namespace limber
