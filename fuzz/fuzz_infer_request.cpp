// Whatever a body holds, it is a request or a refusal with a reason; what is read can be written, in JSON and
// in binary, and then reads as the same.
#include <cmath>
#include <cstdint>

#include "serve/protocol/documents.h"
#include "serve/protocol/infer_response.h"

namespace {

using namespace limber;

ServeStatus any_model(ModelMetadata& to) {
  to.name = "model";
  to.takes_images = true;
  return {};
}

bool all_finite(const Tensor& tensor) {
  if (!is_float(tensor.dtype())) return true;
  const auto aligned = tensor.copy();
  LIMBER_ASSERT(aligned.ok());
  for (int64_t i = 0; i < aligned->elements(); ++i) {
    if (!std::isfinite(element_as_double(*aligned, i))) return false;
  }
  return true;
}

void comes_back(const InferRequest& request, const AnswerForm& form, bool binary) {
  const EncodedRequest encoded = encode_infer_request(request, binary, form);
  InferRequest again;
  AnswerForm form_again;
  const ServeStatus status =
      decode_infer_request({encoded.bytes, encoded.json_bytes, nullptr}, any_model, again, form_again);
  LIMBER_ASSERT(status.ok() && again.inputs.size() == request.inputs.size());
  LIMBER_ASSERT(again.outputs == request.outputs && form_again.binary == form.binary);
  for (size_t i = 0; i < again.inputs.size(); ++i) {
    const Tensor &a = request.inputs[i].tensor, &b = again.inputs[i].tensor;
    LIMBER_ASSERT(a.valid() == b.valid() && request.inputs[i].images == again.inputs[i].images);
    if (!a.valid()) continue;
    LIMBER_ASSERT(a.type() == b.type());
    LIMBER_ASSERT(a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
  }
}

void answer(const InferRequest& request, const AnswerForm& form) {
  InferResponse response;
  response.id = request.id;
  for (const InferInput& input : request.inputs) {
    if (input.tensor.valid()) response.outputs.push_back({input.name, input.tensor});
  }
  const EncodedResponse encoded = encode_infer_response(response, form);
  LIMBER_ASSERT(encoded.size() >= encoded.json.size() && encoded.json.back() == '}');
}

}  // namespace

// The first two bytes say how much of the rest is JSON; 0xffff: all.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t json = data[0] | static_cast<size_t>(data[1]) << 8;
  const auto bytes = *Buffer::allocate(size);
  std::memcpy(bytes->data(), data, size);
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()) + 2, size - 2);
  InferRequest request;
  AnswerForm form;
  InferBody body{text, json == 0xffff ? std::nullopt : std::optional(json), bytes};
  const ServeStatus status = decode_infer_request(body, any_model, request, form);
  LIMBER_ASSERT(status.ok() == status.message.empty());
  bool ready = false;
  LIMBER_ASSERT(!error_json(status.message).empty());
  (void)decode_index_request(text, ready);
  (void)decode_load_request(text);
  if (!status.ok()) return 0;
  comes_back(request, form, true);
  bool finite = true;
  for (const InferInput& input : request.inputs)
    finite = finite && (!input.tensor.valid() || all_finite(input.tensor));
  if (finite) comes_back(request, form, false);
  answer(request, form);
  return 0;
}
