// What a server says besides answers, as JSON of the Open Inference Protocol.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "serve/service.h"

namespace limber {

std::string error_json(std::string_view message);  // {"error":"..."}
std::string server_json(const ServerMetadata& server);
std::string model_json(const ModelMetadata& model);
std::string index_json(std::span<const RepositoryEntry> entries);

// The body of POST /v2/repository/index: nothing, or {"ready": true}.
ServeStatus decode_index_request(std::string_view body, bool& ready_only);
// The body of load and unload: nothing, or an object, of which nothing is used.
ServeStatus decode_load_request(std::string_view body);
// The body of POST /v2/limber/variant: {"model": .., "variant": ..}, both needed.
struct ForceRequest {
  std::string model, variant;
};
ServeStatus decode_force_request(std::string_view body, ForceRequest& to);

}  // namespace limber
