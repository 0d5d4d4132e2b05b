// Inference requests of the Open Inference Protocol, version 2: JSON alone, or JSON with the bytes of tensors
// behind it (the binary tensor data extension). Pure functions on bytes that come from strangers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/service.h"

namespace limber {

// The body of a request.
struct InferBody {
  std::string_view bytes;
  // Inference-Header-Content-Length: how many bytes of `bytes` are JSON, with tensors behind. Nothing: all.
  std::optional<size_t> json_bytes;
  // Keeps `bytes` alive. Where given, tensors that lie aligned in `bytes` are not copied.
  std::shared_ptr<const void> owner;
};

// How the answer to a request is to look.
struct AnswerForm {
  bool binary = false;  // unless an output says otherwise
  struct Output {
    std::string name;
    bool binary = false;
  };
  std::vector<Output> outputs;  // those that were named

  bool binary_of(std::string_view output) const;
};

// Models have a few of each; bounds for what a request of a few bytes can make the server do.
inline constexpr size_t kMaxInferInputs = 64;
inline constexpr size_t kMaxInferOutputs = 256;
inline constexpr size_t kMaxImagesPerInput = 4096;  // at the gate; a model may take fewer rows

// What the model is; asked only when a request holds encoded images, as it is large.
using MetadataOf = std::function<ServeStatus(ModelMetadata&)>;

// Fills inputs, outputs, id and deadline of `to`, whose `received` must be set; model and version are the
// caller's. kBadRequest names the field, its value and what was expected. Nothing is allocated for a tensor
// before its size was compared with the bytes that are there.
ServeStatus decode_infer_request(const InferBody& body, const MetadataOf& model, InferRequest& to,
                                 AnswerForm& form);

// One image, the whole body being its file. kBadRequest when the model takes none.
ServeStatus decode_image_request(std::string_view file, const MetadataOf& model, InferRequest& to);

// The other direction, for clients: `json_bytes` is set when `binary`. Images become base64 in JSON.
// `deadline` is not sent.
struct EncodedRequest {
  std::string bytes;
  std::optional<size_t> json_bytes;
};
EncodedRequest encode_infer_request(const InferRequest& request, bool binary, const AnswerForm& form);

}  // namespace limber
