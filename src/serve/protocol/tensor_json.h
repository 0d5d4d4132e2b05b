// Tensors as the `data` of the Open Inference Protocol: an array of numbers in row-major order, flat or
// nested as the shape says.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/protocol/json_reader.h"
#include "tensor/tensor.h"

namespace limber {

// REQUIRES (both): the product of the dimensions is at most the number of characters left in `in`.
// `what` names the array in messages: "inputs[0].data".
Result<Tensor> read_json_tensor(JsonReader& in, const TensorType& type, std::string_view what);
Result<std::vector<std::string>> read_json_texts(JsonReader& in, std::span<const int64_t> dims,
                                                 std::string_view what);

// Flat. A NaN or an infinity becomes null.
void append_json_data(std::string& to, const Tensor& tensor);

}  // namespace limber
