// Requests as clients write them.
#pragma once

#include <string>
#include <vector>

#include "grpc_service.pb.h"

namespace limber::testing {

using inference::ModelInferRequest;

template <typename T>
std::string raw_bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// An element of BYTES: its length before it.
inline std::string with_length(const std::string& bytes) {
  return raw_bytes<uint32_t>({static_cast<uint32_t>(bytes.size())}) + bytes;
}

inline ModelInferRequest::InferInputTensor& add_input(ModelInferRequest& request, const std::string& name,
                                                      const std::string& datatype,
                                                      const std::vector<int64_t>& shape) {
  auto& input = *request.add_inputs();
  input.set_name(name);
  input.set_datatype(datatype);
  input.mutable_shape()->Add(shape.begin(), shape.end());
  return input;
}

inline ModelInferRequest raw_request(const std::string& model, const std::string& datatype,
                                     const std::vector<int64_t>& shape, const std::string& raw) {
  ModelInferRequest request;
  request.set_model_name(model);
  add_input(request, "image", datatype, shape);
  request.add_raw_input_contents(raw);
  return request;
}

// For a model that wants four floats.
inline ModelInferRequest four_floats(const std::string& model) {
  return raw_request(model, "FP32", {4}, raw_bytes<float>({1, 2, 3, 4}));
}

}  // namespace limber::testing
