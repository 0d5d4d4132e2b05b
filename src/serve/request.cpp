#include "serve/request.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "data/image.h"

namespace limber {
namespace {

ServeStatus bad(std::string message) { return {Refusal::kBadRequest, std::move(message)}; }

std::string names_of(const std::vector<ServedSignature::Port>& ports) {
  std::vector<std::string> names;
  for (const ServedSignature::Port& port : ports) names.push_back(port.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// The type as people know it: with -1 where any number of rows is taken.
std::string wanted(const ServedSignature& signature, const ServedSignature::Port& port) {
  std::vector<int64_t> dims = port.type.shape.dims();
  if (signature.batched) dims[0] = -1;
  return fmt::format("{}[{}]", dtype_name(port.type.dtype), fmt::join(dims, ","));
}

ServeStatus check_tensor(const ServedSignature& signature, const ServedSignature::Port& port,
                         const InferInput& input, int64_t& rows) {
  if (!input.tensor.valid())
    return bad(fmt::format("input '{}' has no data; expected {}", port.name, wanted(signature, port)));
  const TensorType& type = input.tensor.type();
  bool fits = type.dtype == port.type.dtype && type.rank() == port.type.rank();
  for (int axis = signature.batched ? 1 : 0; fits && axis < type.rank(); ++axis)
    fits = type.shape[axis] == port.type.shape[axis];
  if (!fits)
    return bad(
        fmt::format("input '{}' is {}; expected {}", port.name, type.to_string(), wanted(signature, port)));
  rows = signature.batched ? type.shape.dim(0) : 1;
  return {};
}

const InferInput* find_input(const InferRequest& request, const std::string& name) {
  const auto at = std::find_if(request.inputs.begin(), request.inputs.end(),
                               [&](const InferInput& input) { return input.name == name; });
  return at == request.inputs.end() ? nullptr : &*at;
}

size_t row_bytes(const ServedSignature::Port& port) { return port.type.bytes(); }

}  // namespace

ServeStatus check_request(const ServedSignature& signature, const InferRequest& request, bool images,
                          int64_t max_rows, int64_t& rows) {
  rows = -1;
  if (request.inputs.size() != signature.inputs.size())
    return bad(fmt::format("{} inputs were sent; expected {}: {}", request.inputs.size(),
                           signature.inputs.size(), names_of(signature.inputs)));
  for (const ServedSignature::Port& port : signature.inputs) {
    const InferInput* input = find_input(request, port.name);
    if (input == nullptr)
      return bad(fmt::format("input '{}' is missing; expected: {}", port.name, names_of(signature.inputs)));
    int64_t here = static_cast<int64_t>(input->images.size());
    if (input->images.empty()) {
      if (ServeStatus status = check_tensor(signature, port, *input, here); !status.ok()) return status;
    } else if (!images || &port != &signature.inputs.front()) {
      return bad(fmt::format("input '{}' was sent as bytes, and the model takes no images there; expected {}",
                             port.name, wanted(signature, port)));
    }
    if (rows >= 0 && here != rows)
      return bad(fmt::format("input '{}' has {} rows and another {}; expected as many of each", port.name,
                             here, rows));
    rows = here;
  }
  if (rows < 1) return bad("the inputs have no rows; expected 1 or more");
  if (!signature.batched && rows != 1)
    return bad(fmt::format("{} images were sent; the model takes one at a time", rows));
  if (rows > max_rows)
    return {Refusal::kTooLarge, fmt::format("the inputs have {} rows; expected at most {}", rows, max_rows)};
  for (const std::string& name : request.outputs) {
    const bool known = std::any_of(signature.outputs.begin(), signature.outputs.end(),
                                   [&](const ServedSignature::Port& port) { return port.name == name; });
    if (!known) return bad(fmt::format("no output '{}'; there are: {}", name, names_of(signature.outputs)));
  }
  return {};
}

Status fill_rows(const ServedSignature& signature, const Preprocessor* preprocessor,
                 const InferRequest& request, int64_t first, int64_t count, Lane& lane, int64_t at) {
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    const ServedSignature::Port& port = signature.inputs[i];
    const InferInput& input = *find_input(request, port.name);  // check_request() saw it
    Tensor to = lane.input(i);
    const size_t row = row_bytes(port);
    if (input.images.empty()) {
      std::memcpy(static_cast<std::byte*>(to.raw()) + static_cast<size_t>(at) * row,
                  static_cast<const std::byte*>(input.tensor.raw()) + static_cast<size_t>(first) * row,
                  static_cast<size_t>(count) * row);
      continue;
    }
    const size_t floats = preprocessor->output_size();
    for (int64_t r = 0; r < count; ++r) {
      const std::string& bytes = input.images[static_cast<size_t>(first + r)];
      LIMBER_ASSIGN(const Tensor image, decode_image(std::as_bytes(std::span(bytes))));
      LIMBER_TRY(
          preprocessor->apply(image, to.data<float>().subspan(static_cast<size_t>(at + r) * floats, floats)));
    }
  }
  return {};
}

Result<std::vector<InferOutput>> make_outputs(const ServedSignature& signature, const InferRequest& request,
                                              int64_t rows) {
  std::vector<InferOutput> outputs;
  for (const ServedSignature::Port& port : signature.outputs) {
    const auto& asked = request.outputs;
    if (!asked.empty() && std::find(asked.begin(), asked.end(), port.name) == asked.end()) continue;
    TensorType type = port.type;
    if (signature.batched) type.shape[0] = Dim(rows);
    LIMBER_ASSIGN(Tensor tensor, Tensor::allocate(type));
    outputs.push_back({port.name, std::move(tensor)});
  }
  return outputs;
}

void take_rows(const ServedSignature& signature, const Lane& lane, int64_t at, int64_t first, int64_t count,
               std::vector<InferOutput>& outputs) {
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    const ServedSignature::Port& port = signature.outputs[i];
    const auto to = std::find_if(outputs.begin(), outputs.end(),
                                 [&](const InferOutput& o) { return o.name == port.name; });
    if (to == outputs.end()) continue;
    const Tensor from = lane.output(i);
    const size_t row = row_bytes(port);
    std::memcpy(static_cast<std::byte*>(to->tensor.raw()) + static_cast<size_t>(first) * row,
                static_cast<const std::byte*>(from.raw()) + static_cast<size_t>(at) * row,
                static_cast<size_t>(count) * row);
  }
}

}  // namespace limber
