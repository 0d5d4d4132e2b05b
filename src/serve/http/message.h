// Requests and answers of HTTP/1.1, between the bytes of a connection and what is done about them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace limber {

// What stands before the body of a request.
struct HttpHead {
  std::string method, target;
  bool keep_alive = false;
  std::optional<uint64_t> content_length;
  bool chunked = false;
  bool expects_continue = false;
  std::string authorization, content_type;
  std::optional<size_t> json_bytes;  // Inference-Header-Content-Length
};

struct HttpCall {
  HttpHead head;
  std::string_view body;
  std::shared_ptr<const void> owner;  // keeps `body` alive
  double received = 0;                // when its last byte came, as now_seconds()
  bool metrics_only = false;          // came by the port that shows metrics and nothing else
};

struct HttpAnswer {
  int status = 200;
  std::string_view content_type = "application/json";
  std::string body;
  std::vector<Tensor> tail;  // their bytes follow the body
  std::string headers;       // further ones, each "Name: value\r\n"
  bool close = false;        // no further request of this connection is read

  size_t size() const;  // of body and tail
};

HttpAnswer error_answer(int status, std::string_view message);
std::string_view reason_phrase(int status);
// Status line and headers with the empty line behind them.
std::string format_head(const HttpAnswer& answer, bool close);

// One line for each request that was answered.
struct HttpAccess {
  std::string peer, method, target;
  int status = 0;
  size_t request_bytes = 0, response_bytes = 0;  // bodies
  double seconds = 0;  // from the last byte of the request to the last of the answer
};
std::string format_access(const HttpAccess& access);  // a JSON object, without a line break

}  // namespace limber
