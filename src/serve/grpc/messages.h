// Messages of the protocol as the types of serve/service.h, and back. Requests come from strangers: one that
// cannot be meant is kInvalidArgument, with a message that names the field, its value and what was expected,
// and nothing is allocated because a shape says so before as many elements were seen.
#pragma once

#include <string_view>

#include "serve/service.h"

namespace google::protobuf {
class Descriptor;
namespace io {
class ZeroCopyInputStream;
}
}  // namespace google::protobuf
namespace inference {
class ModelInferRequest;
class ModelInferResponse;
class ModelMetadataResponse;
}  // namespace inference

namespace limber {

// Strings, messages and images that one request may consist of: each of them costs memory however short it is
// on the wire (an empty message two bytes there, a hundred in memory).
inline constexpr int64_t kMaxMessageParts = 65536;

// Whether `bytes` are worth parsing as a message of this kind: whole, and of no more than kMaxMessageParts.
Status check_message(google::protobuf::io::ZeroCopyInputStream& bytes,
                     const google::protobuf::Descriptor& kind);

std::string_view grpc_datatype(DType dtype);  // "FP32", "INT64", "BOOL" ...

// Does an input come as BYTES? Then read_infer_request wants to know which may.
bool has_bytes_input(const inference::ModelInferRequest& message);

// Takes large contents out of the message instead of copying them. `image_input` is the name of the input
// that may be given as encoded images, empty: none. `received` as now_seconds(); the parameter "timeout"
// counts from there.
Result<InferRequest> read_infer_request(inference::ModelInferRequest& message, std::string_view image_input,
                                        double received);

// REQUIRES: response.status is ok
void write_infer_response(const InferResponse& response, inference::ModelInferResponse& to);
void write_model_metadata(const ModelMetadata& metadata, inference::ModelMetadataResponse& to);

}  // namespace limber
