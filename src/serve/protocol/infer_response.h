// Answers to inference requests, as JSON and as JSON with the bytes of tensors behind it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serve/protocol/infer_request.h"

namespace limber {

struct EncodedResponse {
  std::string json;
  // Set when tensors follow: the bytes of `tail`, one after the other; Inference-Header-Content-Length is
  // json.size().
  bool binary = false;
  std::vector<Tensor> tail;

  size_t size() const;
};

// REQUIRES: response.status.ok(). Numbers that JSON cannot say (NaN, infinities) become null; binary keeps
// them.
EncodedResponse encode_infer_response(const InferResponse& response, const AnswerForm& form);

}  // namespace limber
