#include "serve/loadgen/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace limber {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<DType, std::string_view>, kDTypeCount> kNames = {{{DType::kF32, "FP32"},
                                                                                 {DType::kF64, "FP64"},
                                                                                 {DType::kF16, "FP16"},
                                                                                 {DType::kBF16, "BF16"},
                                                                                 {DType::kI8, "INT8"},
                                                                                 {DType::kU8, "UINT8"},
                                                                                 {DType::kI16, "INT16"},
                                                                                 {DType::kU16, "UINT16"},
                                                                                 {DType::kI32, "INT32"},
                                                                                 {DType::kU32, "UINT32"},
                                                                                 {DType::kI64, "INT64"},
                                                                                 {DType::kU64, "UINT64"},
                                                                                 {DType::kBool, "BOOL"}}};

std::string json_text(std::string_view text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += fmt::format("{}{}", i > 0 ? "," : "", shape.dim(i));
  return text + "]";
}

std::string data_text(const Tensor& tensor) {
  std::string text = "[";
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (i > 0) text += ',';
    if (tensor.dtype() == DType::kBool) {
      text += element_as_int(tensor, i) != 0 ? "true" : "false";
    } else if (is_float(tensor.dtype())) {
      text += fmt::format("{:.9g}", element_as_double(tensor, i));
    } else {
      text += fmt::format("{}", element_as_int(tensor, i));
    }
  }
  return text + "]";
}

std::string input_text(const std::string& name, const Tensor& tensor, Encoding encoding) {
  const std::string values = encoding == Encoding::kJson
                                 ? fmt::format("\"data\":{}", data_text(tensor))
                                 : fmt::format("\"parameters\":{{\"binary_data_size\":{}}}", tensor.bytes());
  return fmt::format("{{\"name\":{},\"shape\":{},\"datatype\":\"{}\",{}}}", json_text(name),
                     shape_text(tensor.shape()), protocol_name(tensor.dtype()), values);
}

Status fill_random(Tensor& tensor, Random& random) {
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const auto at = static_cast<size_t>(i);
    const float x = static_cast<float>(random.normal());
    switch (tensor.dtype()) {
      case DType::kF32:
        tensor.data<float>()[at] = x;
        break;
      case DType::kF64:
        tensor.data<double>()[at] = x;
        break;
      case DType::kF16:
        static_cast<uint16_t*>(tensor.raw())[at] = float_to_half(x);
        break;
      case DType::kBF16:
        static_cast<uint16_t*>(tensor.raw())[at] = float_to_bfloat16(x);
        break;
      default: {
        // Little-endian: the first byte is the lowest.
        const size_t size = dtype_size(tensor.dtype());
        std::byte* element = static_cast<std::byte*>(tensor.raw()) + at * size;
        std::fill_n(element, size, std::byte{0});
        element[0] = static_cast<std::byte>(random.below(2));
      }
    }
  }
  return {};
}

// Where the largest number is; -1 when one is none.
template <typename Number>
int64_t largest(size_t count, const Number& number) {
  int64_t best = -1;
  double most = 0;
  for (size_t i = 0; i < count; ++i) {
    const double x = number(i);
    if (std::isnan(x)) return -1;
    if (best < 0 || x > most) best = static_cast<int64_t>(i), most = x;
  }
  return best;
}

int64_t predicted_class(const json& output, std::string_view binary) {
  const auto shape = output.find("shape");
  if (shape == output.end() || !shape->is_array() || shape->empty() || !shape->back().is_number_integer())
    return -1;
  const auto classes = shape->back().get<int64_t>();
  if (classes < 1 || classes > (1 << 24)) return -1;
  const auto count = static_cast<size_t>(classes);
  if (const auto data = output.find("data"); data != output.end() && data->is_array()) {
    if (data->size() < count) return -1;
    return largest(count, [&](size_t i) {
      const json& x = (*data)[i];
      return x.is_number() ? x.get<double>() : std::nan("");
    });
  }
  if (output.value("datatype", "") != "FP32" || binary.size() < count * sizeof(float)) return -1;
  return largest(count, [&](size_t i) {
    float x = 0;
    std::memcpy(&x, binary.data() + i * sizeof(float), sizeof(float));
    return static_cast<double>(x);
  });
}

}  // namespace

std::string_view protocol_name(DType dtype) {
  for (const auto& [type, name] : kNames) {
    if (type == dtype) return name;
  }
  return {};
}

Result<DType> parse_protocol_name(std::string_view name) {
  for (const auto& [type, text] : kNames) {
    if (text == name) return type;
  }
  return unsupported("datatype '{}' is not known; expected FP32, INT64 and the like", name);
}

Result<std::vector<LoadRow>> random_rows(const ModelMetadata& model, int count, uint64_t seed) {
  Random random(seed);
  std::vector<LoadRow> rows(static_cast<size_t>(count));
  for (LoadRow& row : rows) {
    for (const TensorSpec& spec : model.inputs) {
      std::vector<int64_t> dims = spec.shape;
      double elements = 1;
      for (int64_t& dim : dims) {
        if (dim < 0) dim = 1;
        elements *= static_cast<double>(dim);
      }
      if (elements > 1e8 || dims.size() > kMaxRank)
        return unsupported("input '{}' has {} dimensions and {:.3g} elements; expected at most {} and 1e8",
                           spec.name, dims.size(), elements, kMaxRank);
      LIMBER_ASSIGN(Tensor tensor, Tensor::allocate({spec.dtype, Shape::of(dims)}));
      LIMBER_TRY(fill_random(tensor, random));
      row.inputs.push_back(std::move(tensor));
    }
  }
  return rows;
}

RequestWriter::RequestWriter(const LoadTarget& target, const ModelMetadata& model, std::vector<LoadRow> rows,
                             Encoding encoding)
    : target_(target), model_(model), path_(target.model_path() + "/infer") {
  LIMBER_ASSERT(!rows.empty());
  if (encoding == Encoding::kBinary) {
    for (const TensorSpec& output : model.outputs)
      outputs_ += fmt::format("{}{{\"name\":{},\"parameters\":{{\"binary_data\":true}}}}",
                              outputs_.empty() ? "" : ",", json_text(output.name));
    outputs_ = ",\"outputs\":[" + outputs_ + "]";
  }
  for (const LoadRow& row : rows) {
    LIMBER_ASSERT(row.inputs.size() == model.inputs.size());
    Rendered rendered{{}, {}, row.label};
    for (size_t i = 0; i < row.inputs.size(); ++i) {
      const Tensor& tensor = row.inputs[i];
      if (i > 0) rendered.inputs += ',';
      rendered.inputs += input_text(model.inputs[i].name, tensor, encoding);
      if (encoding == Encoding::kBinary)
        rendered.bytes.append(static_cast<const char*>(tensor.raw()), tensor.bytes());
    }
    rows_.push_back(std::move(rendered));
  }
}

std::string RequestWriter::http_head(std::string_view path, size_t body, size_t json_bytes) const {
  std::string head = fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: limber-loadgen\r\nContent-Type: {}\r\nContent-Length: "
      "{}\r\n",
      path, target_.authority(), json_bytes == 0 ? "application/json" : "application/octet-stream", body);
  if (json_bytes > 0) head += fmt::format("Inference-Header-Content-Length: {}\r\n", json_bytes);
  return head + "\r\n";
}

void RequestWriter::write(size_t row, uint64_t id, int64_t timeout_us, std::string& head,
                          std::string_view& tail) const {
  const Rendered& rendered = rows_[row];
  const std::string parameters =
      timeout_us > 0 ? fmt::format(",\"parameters\":{{\"timeout\":{}}}", timeout_us) : "";
  const std::string text =
      fmt::format("{{\"id\":\"{}\",\"inputs\":[{}]{}{}}}", id, rendered.inputs, outputs_, parameters);
  tail = rendered.bytes;
  head = http_head(path_, text.size() + tail.size(), tail.empty() ? 0 : text.size());
  head += text;
}

ParsedAnswer parse_answer(std::string_view body, size_t json_bytes) {
  ParsedAnswer answer;
  if (json_bytes > body.size()) return answer;
  const std::string_view text = json_bytes == 0 ? body : body.substr(0, json_bytes);
  const json root = json::parse(text, nullptr, false);
  if (!root.is_object()) return answer;
  if (const auto id = root.find("id"); id != root.end() && id->is_string()) answer.id = *id;
  if (const auto parameters = root.find("parameters"); parameters != root.end() && parameters->is_object()) {
    const auto variant = parameters->find("variant");
    if (variant != parameters->end() && variant->is_string()) answer.variant = *variant;
  }
  const auto outputs = root.find("outputs");
  if (outputs == root.end() || !outputs->is_array()) return answer;
  answer.readable = true;
  if (!outputs->empty() && outputs->front().is_object())
    answer.predicted = predicted_class(outputs->front(), body.substr(text.size()));
  return answer;
}

}  // namespace limber
