#include "serve/protocol/documents.h"

#include "serve/protocol/datatype.h"
#include "serve/protocol/json_reader.h"
#include "serve/protocol/json_writer.h"

namespace limber {
namespace {

void append_specs(std::string& to, std::string_view name, std::span<const TensorSpec> specs) {
  to += fmt::format(",\"{}\":[", name);
  for (const TensorSpec& spec : specs) {
    to += &spec == specs.data() ? "{\"name\":" : ",{\"name\":";
    append_json_string(to, spec.name);
    to += fmt::format(",\"datatype\":\"{}\",\"shape\":", datatype_name(spec.dtype));
    append_json_list(to, spec.shape);
    to += '}';
  }
  to += ']';
}

// An empty body is an empty object.
template <typename Member>
ServeStatus decode_object(std::string_view body, Member member) {
  JsonReader in(body);
  if (in.done()) return {};
  Status status = in.members("request", [&](std::string_view key) { return member(in, key); });
  if (status.ok() && !in.done()) status = in.unexpected("request", "nothing after the object");
  return status.ok() ? ServeStatus() : ServeStatus{Refusal::kBadRequest, status.message()};
}

}  // namespace

std::string error_json(std::string_view message) {
  std::string text = "{\"error\":";
  append_json_string(text, message);
  return text + "}";
}

std::string server_json(const ServerMetadata& server) {
  std::string text = "{\"name\":";
  append_json_string(text, server.name);
  text += ",\"version\":";
  append_json_string(text, server.version);
  text += ",\"extensions\":";
  append_json_list(text, server.extensions);
  return text + "}";
}

std::string model_json(const ModelMetadata& model) {
  std::string text = "{\"name\":";
  append_json_string(text, model.name);
  text += ",\"versions\":";
  append_json_list(text, model.versions);
  text += ",\"platform\":";
  append_json_string(text, model.platform);
  append_specs(text, "inputs", model.inputs);
  append_specs(text, "outputs", model.outputs);
  text += fmt::format(",\"parameters\":{{\"takes_images\":{},\"classes\":", model.takes_images);
  append_json_list(text, model.classes);
  return text + "}}";
}

std::string index_json(std::span<const RepositoryEntry> entries) {
  std::string text = "[";
  for (const RepositoryEntry& entry : entries) {
    text += &entry == entries.data() ? "{\"name\":" : ",{\"name\":";
    append_json_string(text, entry.name);
    text += ",\"version\":";
    append_json_string(text, entry.version);
    text += ",\"state\":";
    append_json_string(text, entry.state);
    text += ",\"reason\":";
    append_json_string(text, entry.reason);
    text += '}';
  }
  return text + "]";
}

ServeStatus decode_index_request(std::string_view body, bool& ready_only) {
  ready_only = false;
  return decode_object(body, [&](JsonReader& in, std::string_view key) -> Status {
    if (key != "ready") return in.skip(key);
    LIMBER_ASSIGN(ready_only, in.boolean("ready"));
    return {};
  });
}

ServeStatus decode_load_request(std::string_view body) {
  return decode_object(body, [](JsonReader& in, std::string_view key) { return in.skip(key); });
}

ServeStatus decode_force_request(std::string_view body, ForceRequest& to) {
  to = {};
  ServeStatus status = decode_object(body, [&](JsonReader& in, std::string_view key) -> Status {
    if (key != "model" && key != "variant") return in.skip(key);
    LIMBER_ASSIGN((key == "model" ? to.model : to.variant), in.string(key));
    return {};
  });
  if (status.ok() && (to.model.empty() || to.variant.empty()))
    status = {Refusal::kBadRequest,
              "'model' and 'variant' are needed, as in {\"model\": \"m\", \"variant\": \"original\"}"};
  return status;
}

}  // namespace limber
