#include <cstring>

#include "serve/protocol/base64.h"
#include "serve/protocol/datatype.h"
#include "serve/protocol/infer_request.h"
#include "serve/protocol/json_writer.h"
#include "serve/protocol/tensor_json.h"

namespace limber {
namespace {

// What stands behind the JSON.
std::string tail_of(const InferInput& input) {
  std::string tail;
  if (input.tensor.valid()) tail.assign(static_cast<const char*>(input.tensor.raw()), input.tensor.bytes());
  for (const std::string& image : input.images) {
    const auto length = static_cast<uint32_t>(image.size());
    char bytes[4];
    std::memcpy(bytes, &length, 4);
    tail.append(bytes, 4).append(image);
  }
  return tail;
}

void append_data(std::string& to, const InferInput& input) {
  if (input.tensor.valid()) return append_json_data(to, input.tensor);
  to += '[';
  for (size_t i = 0; i < input.images.size(); ++i) {
    if (i > 0) to += ',';
    append_json_string(to, encode_base64(input.images[i]));
  }
  to += ']';
}

void append_outputs(std::string& to, const InferRequest& request, const AnswerForm& form) {
  to += ",\"outputs\":[";
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    to += i > 0 ? ",{\"name\":" : "{\"name\":";
    append_json_string(to, request.outputs[i]);
    to += fmt::format(",\"parameters\":{{\"binary_data\":{}}}}}", form.binary_of(request.outputs[i]));
  }
  to += ']';
}

}  // namespace

EncodedRequest encode_infer_request(const InferRequest& request, bool binary, const AnswerForm& form) {
  EncodedRequest to;
  std::string json = "{", tail;
  if (!request.id.empty()) {
    json += "\"id\":";
    append_json_string(json, request.id);
    json += ',';
  }
  json += fmt::format("\"parameters\":{{\"binary_data_output\":{}}},\"inputs\":[", form.binary);
  for (const InferInput& input : request.inputs) {
    if (&input != request.inputs.data()) json += ',';
    json += "{\"name\":";
    append_json_string(json, input.name);
    const bool numbers = input.tensor.valid();
    json += fmt::format(",\"datatype\":\"{}\",\"shape\":",
                        numbers ? datatype_name(input.tensor.dtype()) : kBytesDatatype);
    append_json_list(json, numbers ? input.tensor.shape().dims()
                                   : std::vector<int64_t>{static_cast<int64_t>(input.images.size())});
    if (binary) {
      const std::string bytes = tail_of(input);
      json += fmt::format(",\"parameters\":{{\"binary_data_size\":{}}}}}", bytes.size());
      tail += bytes;
    } else {
      json += ",\"data\":";
      append_data(json, input);
      json += '}';
    }
  }
  json += ']';
  if (!request.outputs.empty()) append_outputs(json, request, form);
  json += '}';
  if (binary) to.json_bytes = json.size();
  to.bytes = std::move(json) + tail;
  return to;
}

}  // namespace limber
