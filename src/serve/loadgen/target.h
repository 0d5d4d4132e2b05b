// The server that is put under load, and what it says of its model.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "serve/service.h"

namespace limber {

struct LoadTarget {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;
  std::string model, version;  // version empty: the newest

  std::string authority() const;  // "127.0.0.1:8000", "[::1]:8000"
  // "/v2/models/resnet/versions/2"; characters that a path may not hold are escaped.
  std::string model_path() const;
};

// "http://HOST:PORT", "HOST:PORT" or "HOST"; without a port 8000.
Result<LoadTarget> parse_url(const std::string& url);

struct PlainAnswer {
  int status = 0;
  std::string body;
};
// One request on a connection of its own. kIo when there is no answer within `seconds`.
Result<PlainAnswer> ask_once(const LoadTarget& target, const std::string& method, const std::string& path,
                             const std::string& body, double seconds);

// The only model that the server has. kInvalidArgument, naming them, where there are several.
Result<std::string> only_model(const LoadTarget& target, double seconds);
// GET /v2/models/{m}. Untrusted: what makes no sense is kCorrupt.
Result<ModelMetadata> fetch_metadata(const LoadTarget& target, double seconds);
Result<ModelMetadata> parse_metadata(const std::string& json);

}  // namespace limber
