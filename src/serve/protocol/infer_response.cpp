#include "serve/protocol/infer_response.h"

#include "serve/protocol/datatype.h"
#include "serve/protocol/json_writer.h"
#include "serve/protocol/tensor_json.h"

namespace limber {
namespace {

void append_member(std::string& to, std::string_view name, std::string_view text) {
  if (to.back() != '{') to += ',';
  append_json_string(to, name);
  to += ':';
  append_json_string(to, text);
}
void append_member(std::string& to, std::string_view name, double number) {
  if (to.back() != '{') to += ',';
  append_json_string(to, name);
  to += ':';
  append_json_number(to, number);
}

void append_output(const InferOutput& output, bool binary, EncodedResponse& to) {
  to.json += '{';
  append_member(to.json, "name", output.name);
  append_member(to.json, "datatype", datatype_name(output.tensor.dtype()));
  to.json += ",\"shape\":";
  append_json_list(to.json, output.tensor.shape().dims());
  if (binary) {
    to.json += fmt::format(",\"parameters\":{{\"binary_data_size\":{}}}}}", output.tensor.bytes());
    to.binary = true;
    if (output.tensor.bytes() > 0) to.tail.push_back(output.tensor);
  } else {
    to.json += ",\"data\":";
    append_json_data(to.json, output.tensor);
    to.json += '}';
  }
}

}  // namespace

size_t EncodedResponse::size() const {
  size_t total = json.size();
  for (const Tensor& tensor : tail) total += tensor.bytes();
  return total;
}

EncodedResponse encode_infer_response(const InferResponse& response, const AnswerForm& form) {
  EncodedResponse to;
  to.json = "{";
  append_member(to.json, "model_name", response.model);
  append_member(to.json, "model_version", response.version);
  if (!response.id.empty()) append_member(to.json, "id", response.id);
  to.json += ",\"parameters\":{";
  if (!response.variant.empty()) append_member(to.json, "variant", response.variant);
  append_member(to.json, "queue_s", response.queue_s);
  append_member(to.json, "compute_s", response.compute_s);
  to.json += "},\"outputs\":[";
  for (const InferOutput& output : response.outputs) {
    if (&output != response.outputs.data()) to.json += ',';
    append_output(output, form.binary_of(output.name), to);
  }
  to.json += "]}";
  return to;
}

}  // namespace limber
