// Whatever the bytes are, a message over gRPC ends in a Status or in a request whose tensors are as large as
// their types say; what is refused before parsing costs nothing, and the answer to a request carries its
// bits.
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstdint>
#include <cstring>

#include "grpc_service.pb.h"
#include "serve/grpc/messages.h"

namespace {

using namespace limber;

void check_input(const InferInput& input) {
  LIMBER_ASSERT(!input.name.empty());
  if (!input.tensor.valid()) {
    LIMBER_ASSERT(static_cast<int64_t>(input.images.size()) <= kMaxMessageParts);
    return;
  }
  LIMBER_ASSERT(input.images.empty() && input.tensor.is_aligned());
  LIMBER_ASSERT(input.tensor.buffer()->size() >= input.tensor.bytes());
  // Touches every byte, and as a bool where that is what it is.
  double sum = 0;
  for (int64_t i = 0; i < input.tensor.elements(); ++i) sum += element_as_double(input.tensor, i);
  [[maybe_unused]] static volatile double sink;
  sink = sum;
}

void check_answer(const InferRequest& request) {
  InferResponse response;
  response.id = request.id;
  for (const InferInput& input : request.inputs) {
    if (input.tensor.valid()) response.outputs.push_back({input.name, input.tensor});
  }
  inference::ModelInferResponse answer;
  write_infer_response(response, answer);
  LIMBER_ASSERT(answer.outputs_size() == answer.raw_output_contents_size());
  for (int i = 0; i < answer.outputs_size(); ++i) {
    const Tensor& tensor = response.outputs[static_cast<size_t>(i)].tensor;
    const std::string& raw = answer.raw_output_contents(i);
    LIMBER_ASSERT(raw.size() == tensor.bytes());
    LIMBER_ASSERT(raw.empty() || std::memcmp(raw.data(), tensor.raw(), raw.size()) == 0);
  }
  inference::ModelInferResponse again;
  LIMBER_ASSERT(again.ParseFromString(answer.SerializeAsString()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  google::protobuf::io::ArrayInputStream stream(data, static_cast<int>(size), 13);
  inference::ModelInferRequest message;
  const Status sound = check_message(stream, *message.GetDescriptor());
  if (!sound.ok()) return 0;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  const std::string image_input = message.inputs_size() > 0 ? message.inputs(0).name() : "";
  const auto request = read_infer_request(message, image_input, 1);
  if (!request.ok()) {
    LIMBER_ASSERT(!request.status().message().empty());
    return 0;
  }
  for (const InferInput& input : request->inputs) check_input(input);
  check_answer(*request);
  return 0;
}
