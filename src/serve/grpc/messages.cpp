#include "serve/grpc/messages.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "grpc_service.pb.h"

namespace limber {
namespace {

using inference::InferParameter;
using inference::InferTensorContents;
using Input = inference::ModelInferRequest::InferInputTensor;
using Parameters = google::protobuf::Map<std::string, InferParameter>;

struct Datatype {
  std::string_view name;
  DType dtype;
  std::string_view field;  // of InferTensorContents; empty: raw only
};
constexpr Datatype kDatatypes[] = {
    {"BOOL", DType::kBool, "bool_contents"},
    {"UINT8", DType::kU8, "uint_contents"},
    {"UINT16", DType::kU16, "uint_contents"},
    {"UINT32", DType::kU32, "uint_contents"},
    {"UINT64", DType::kU64, "uint64_contents"},
    {"INT8", DType::kI8, "int_contents"},
    {"INT16", DType::kI16, "int_contents"},
    {"INT32", DType::kI32, "int_contents"},
    {"INT64", DType::kI64, "int64_contents"},
    {"FP16", DType::kF16, ""},
    {"BF16", DType::kBF16, ""},
    {"FP32", DType::kF32, "fp32_contents"},
    {"FP64", DType::kF64, "fp64_contents"},
};
constexpr std::string_view kBytes = "BYTES";
constexpr std::string_view kBytesField = "bytes_contents";

// What a stranger wrote, short enough for a message and still UTF-8.
std::string quoted(std::string_view text) {
  return text.size() <= 60 ? fmt::format("'{}'", text) : fmt::format("'{:.60}...'", text);
}

Result<const Datatype*> find_datatype(const std::string& name) {
  for (const Datatype& type : kDatatypes) {
    if (type.name == name) return &type;
  }
  std::string known;
  for (const Datatype& type : kDatatypes) known += fmt::format("{}, ", type.name);
  return invalid("datatype {} is none of {}{}", quoted(name), known, kBytes);
}

Result<int64_t> count_elements(const Input& input) {
  if (input.shape_size() > kMaxRank) {
    return invalid("shape of {} dimensions; at most {}", input.shape_size(), kMaxRank);
  }
  for (int i = 0; i < input.shape_size(); ++i) {
    if (input.shape(i) < 0) return invalid("shape[{}] is {}; at least 0", i, input.shape(i));
  }
  const std::span<const int64_t> dims(input.shape().data(), static_cast<size_t>(input.shape_size()));
  // Every element type has at most 8 bytes, so the number of bytes is a number too.
  const auto count = checked_elements(dims, std::numeric_limits<int64_t>::max() / 8);
  if (!count) return invalid("shape [{}] has more elements than can be counted", fmt::join(dims, ","));
  return *count;
}

Shape shape_of(const Input& input) {
  return Shape::of(std::span<const int64_t>(input.shape().data(), static_cast<size_t>(input.shape_size())));
}

// Which fields of `contents` hold anything, and how much.
std::array<std::pair<std::string_view, int>, 8> filled(const InferTensorContents& contents) {
  return {{{"bool_contents", contents.bool_contents_size()},
           {"int_contents", contents.int_contents_size()},
           {"int64_contents", contents.int64_contents_size()},
           {"uint_contents", contents.uint_contents_size()},
           {"uint64_contents", contents.uint64_contents_size()},
           {"fp32_contents", contents.fp32_contents_size()},
           {"fp64_contents", contents.fp64_contents_size()},
           {kBytesField, contents.bytes_contents_size()}}};
}

Status check_contents(const Input& input, std::string_view field, int64_t elements) {
  int found = 0;
  for (const auto& [name, size] : filled(input.contents())) {
    if (name == field) {
      found = size;
    } else if (size != 0) {
      return invalid("contents.{} has {} values; datatype {} goes to contents.{}", name, size,
                     input.datatype(), field);
    }
  }
  if (found == elements) return {};
  return invalid("contents.{} has {} values; its shape [{}] wants {}, here or in raw_input_contents", field,
                 found, fmt::join(input.shape(), ","), elements);
}

template <typename T, typename Wire>
Result<Tensor> copy_typed(const google::protobuf::RepeatedField<Wire>& values, const Input& input) {
  LIMBER_ASSIGN(Tensor tensor, Tensor::allocate({DTypeOf<T>::value, shape_of(input)}));
  const std::span<T> to = tensor.data<T>();
  for (size_t i = 0; i < to.size(); ++i) {
    const Wire value = values[static_cast<int>(i)];
    if constexpr (sizeof(T) < sizeof(Wire)) {
      if (!std::in_range<T>(value)) {
        return invalid("element {} is {}; {} has {} to {}", i, value, input.datatype(),
                       std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
      }
    }
    to[i] = static_cast<T>(value);
  }
  return tensor;
}

Result<Tensor> read_typed(const Input& input, const Datatype& type, int64_t elements) {
  if (type.field.empty()) {
    return invalid("datatype {} has no typed contents; send it in raw_input_contents", type.name);
  }
  LIMBER_TRY(check_contents(input, type.field, elements));
  const InferTensorContents& contents = input.contents();
  switch (type.dtype) {
    case DType::kBool:
      return copy_typed<bool>(contents.bool_contents(), input);
    case DType::kU8:
      return copy_typed<uint8_t>(contents.uint_contents(), input);
    case DType::kU16:
      return copy_typed<uint16_t>(contents.uint_contents(), input);
    case DType::kU32:
      return copy_typed<uint32_t>(contents.uint_contents(), input);
    case DType::kU64:
      return copy_typed<uint64_t>(contents.uint64_contents(), input);
    case DType::kI8:
      return copy_typed<int8_t>(contents.int_contents(), input);
    case DType::kI16:
      return copy_typed<int16_t>(contents.int_contents(), input);
    case DType::kI32:
      return copy_typed<int32_t>(contents.int_contents(), input);
    case DType::kI64:
      return copy_typed<int64_t>(contents.int64_contents(), input);
    case DType::kF32:
      return copy_typed<float>(contents.fp32_contents(), input);
    case DType::kF64:
      return copy_typed<double>(contents.fp64_contents(), input);
    case DType::kF16:
    case DType::kBF16:
      break;  // refused above
  }
  LIMBER_UNREACHABLE();
}

Result<Tensor> read_raw(const Input& input, const Datatype& type, int64_t elements, std::string raw) {
  const uint64_t bytes = static_cast<uint64_t>(elements) * dtype_size(type.dtype);
  if (raw.size() != bytes) {
    return invalid("raw_input_contents of {} bytes; {} of shape [{}] has {}", raw.size(), type.name,
                   fmt::join(input.shape(), ","), bytes);
  }
  if (type.dtype == DType::kBool) {
    const auto wrong = std::find_if(raw.begin(), raw.end(), [](char c) { return c != 0 && c != 1; });
    if (wrong != raw.end()) {
      return invalid("element {} of BOOL is {}; 0 or 1", wrong - raw.begin(), static_cast<uint8_t>(*wrong));
    }
  }
  // The bytes stay where they were received.
  const auto owner = std::make_shared<std::string>(std::move(raw));
  return Tensor({type.dtype, shape_of(input)}, Buffer::borrow(owner->data(), owner->size(), owner));
}

Result<std::vector<std::string>> split_raw_bytes(std::string_view raw, int64_t elements) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (at < raw.size()) {
    if (static_cast<int64_t>(parts.size()) == elements) {
      return invalid("raw_input_contents has {} bytes behind the {} elements of its shape", raw.size() - at,
                     elements);
    }
    uint32_t length = 0;
    if (raw.size() - at < sizeof length) {
      return invalid("raw_input_contents ends within the length of element {}; four bytes", parts.size());
    }
    for (size_t i = 0; i < sizeof length; ++i)
      length |= uint32_t{static_cast<uint8_t>(raw[at + i])} << (8 * i);
    at += sizeof length;
    if (length > raw.size() - at) {
      return invalid("element {} of raw_input_contents says it has {} bytes; {} are left", parts.size(),
                     length, raw.size() - at);
    }
    parts.emplace_back(raw.substr(at, length));
    at += length;
  }
  if (static_cast<int64_t>(parts.size()) != elements) {
    return invalid("raw_input_contents has {} elements; its shape wants {}", parts.size(), elements);
  }
  return parts;
}

Result<std::vector<std::string>> read_images(Input& input, std::string* raw, std::string_view image_input) {
  if (image_input.empty()) return invalid("datatype BYTES; this model takes no encoded images, only numbers");
  if (input.name() != image_input) {
    return invalid("datatype BYTES; only input {} may be given as encoded images", quoted(image_input));
  }
  LIMBER_ASSIGN(const int64_t elements, count_elements(input));
  if (elements > kMaxMessageParts) return invalid("{} images; at most {}", elements, kMaxMessageParts);
  if (raw != nullptr) return split_raw_bytes(*raw, elements);
  LIMBER_TRY(check_contents(input, kBytesField, elements));
  auto& contents = *input.mutable_contents()->mutable_bytes_contents();
  return std::vector<std::string>(std::make_move_iterator(contents.begin()),
                                  std::make_move_iterator(contents.end()));
}

Status refuse_shared_memory(const Parameters& parameters) {
  if (!parameters.contains("shared_memory_region")) return {};
  return invalid("parameter 'shared_memory_region'; this server shares no memory, send the contents");
}

// `raw` is null when contents are typed.
Result<InferInput> read_input(Input& input, std::string* raw, std::string_view image_input) {
  InferInput to;
  to.name = input.name();
  if (to.name.empty()) return invalid("no name; inputs are given by name");
  LIMBER_TRY(refuse_shared_memory(input.parameters()));
  if (raw != nullptr && input.has_contents()) {
    return invalid("contents beside raw_input_contents; one of the two");
  }
  if (input.datatype() == kBytes) {
    LIMBER_ASSIGN(to.images, read_images(input, raw, image_input));
    return to;
  }
  LIMBER_ASSIGN(const Datatype* type, find_datatype(input.datatype()));
  LIMBER_ASSIGN(const int64_t elements, count_elements(input));
  LIMBER_ASSIGN(to.tensor, raw == nullptr ? read_typed(input, *type, elements)
                                          : read_raw(input, *type, elements, std::move(*raw)));
  return to;
}

Status read_outputs(const inference::ModelInferRequest& message, InferRequest& to) {
  for (int i = 0; i < message.outputs_size(); ++i) {
    const auto& output = message.outputs(i);
    const std::string where = fmt::format("outputs[{}] {}", i, quoted(output.name()));
    if (output.name().empty()) return invalid("{}: no name; outputs are asked for by name", where);
    if (const Status status = refuse_shared_memory(output.parameters()); !status.ok())
      return status.in(where);
    if (output.parameters().contains("classification")) {
      return invalid("{}: parameter 'classification'; this server answers with numbers only", where);
    }
    to.outputs.push_back(output.name());
  }
  return {};
}

// Seconds; infinity when nothing is said or 0.
Result<double> read_timeout(const Parameters& parameters) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const auto found = parameters.find("timeout");
  if (found == parameters.end()) return kNever;
  const InferParameter& value = found->second;
  double microseconds = 0;
  if (value.has_int64_param()) {
    if (value.int64_param() < 0) {
      return invalid("parameter 'timeout' is {}; microseconds, 0 or more", value.int64_param());
    }
    microseconds = static_cast<double>(value.int64_param());
  } else if (value.has_uint64_param()) {
    microseconds = static_cast<double>(value.uint64_param());
  } else {
    return invalid("parameter 'timeout' is no int64_param; microseconds, 0 or more");
  }
  return microseconds > 0 ? microseconds * 1e-6 : kNever;
}

template <typename Tensors>
void write_specs(const std::vector<TensorSpec>& specs, Tensors& to) {
  for (const TensorSpec& spec : specs) {
    auto& tensor = *to.Add();
    tensor.set_name(spec.name);
    tensor.set_datatype(std::string(grpc_datatype(spec.dtype)));
    tensor.mutable_shape()->Add(spec.shape.begin(), spec.shape.end());
  }
}

int64_t microseconds(double seconds) { return std::llround(seconds * 1e6); }

}  // namespace

std::string_view grpc_datatype(DType dtype) {
  for (const Datatype& type : kDatatypes) {
    if (type.dtype == dtype) return type.name;
  }
  LIMBER_UNREACHABLE();
}

bool has_bytes_input(const inference::ModelInferRequest& message) {
  return std::any_of(message.inputs().begin(), message.inputs().end(),
                     [](const Input& input) { return input.datatype() == kBytes; });
}

Result<InferRequest> read_infer_request(inference::ModelInferRequest& message, std::string_view image_input,
                                        double received) {
  InferRequest to;
  to.received = received;
  to.model = message.model_name();
  to.version = message.model_version();
  to.id = message.id();
  if (to.model.empty()) return invalid("model_name is empty; the name of a model");
  LIMBER_ASSIGN(const double timeout, read_timeout(message.parameters()));
  to.deadline = received + timeout;
  const int inputs = message.inputs_size(), raws = message.raw_input_contents_size();
  if (inputs == 0) return invalid("no inputs; at least one");
  if (raws != 0 && raws != inputs) {
    return invalid("{} raw_input_contents and {} inputs; one for each input, or none", raws, inputs);
  }
  for (int i = 0; i < inputs; ++i) {
    std::string* raw = raws > 0 ? message.mutable_raw_input_contents(i) : nullptr;
    auto input = read_input(*message.mutable_inputs(i), raw, image_input);
    if (!input.ok())
      return input.status().in(fmt::format("inputs[{}] {}", i, quoted(message.inputs(i).name())));
    to.inputs.push_back(*std::move(input));
  }
  LIMBER_TRY(read_outputs(message, to));
  return to;
}

void write_infer_response(const InferResponse& response, inference::ModelInferResponse& to) {
  to.set_model_name(response.model);
  to.set_model_version(response.version);
  to.set_id(response.id);
  auto& parameters = *to.mutable_parameters();
  if (!response.variant.empty()) parameters["variant"].set_string_param(response.variant);
  parameters["queue_us"].set_int64_param(microseconds(response.queue_s));
  parameters["compute_us"].set_int64_param(microseconds(response.compute_s));
  for (const InferOutput& output : response.outputs) {
    auto& tensor = *to.add_outputs();
    tensor.set_name(output.name);
    tensor.set_datatype(std::string(grpc_datatype(output.tensor.dtype())));
    const std::vector<int64_t> dims = output.tensor.shape().dims();
    tensor.mutable_shape()->Add(dims.begin(), dims.end());
    to.add_raw_output_contents(output.tensor.raw(), output.tensor.bytes());
  }
}

void write_model_metadata(const ModelMetadata& metadata, inference::ModelMetadataResponse& to) {
  to.set_name(metadata.name);
  to.mutable_versions()->Add(metadata.versions.begin(), metadata.versions.end());
  to.set_platform(metadata.platform);
  write_specs(metadata.inputs, *to.mutable_inputs());
  write_specs(metadata.outputs, *to.mutable_outputs());
}

}  // namespace limber
