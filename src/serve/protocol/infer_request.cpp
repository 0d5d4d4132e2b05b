#include "serve/protocol/infer_request.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "serve/protocol/base64.h"
#include "serve/protocol/datatype.h"
#include "serve/protocol/tensor_json.h"

namespace limber {
namespace {

// An input as its object says it, before its data are looked at.
struct InputFields {
  std::string name, datatype, content_type;
  std::vector<int64_t> shape;
  bool has_name = false, has_shape = false;
  std::optional<int64_t> binary_size;
  const char* data = nullptr;  // where the value of `data` starts
  Tensor tensor;               // what `data` holds, of this type, where it was read at once
  TensorType type;
};

ServeStatus refused(const Status& status) {
  const bool large = status.code() == Code::kResourceExhausted;
  return {large ? Refusal::kTooLarge : Refusal::kBadRequest, status.message()};
}

class RequestDecoder {
 public:
  RequestDecoder(const InferBody& body, const MetadataOf& model, InferRequest& to, AnswerForm& form)
      : body_(body),
        model_(model),
        to_(to),
        form_(form),
        in_(body.bytes.substr(0, json_size(body))),
        tail_(body.bytes.substr(json_size(body))) {}

  ServeStatus decode() {
    const Status status = decode_body();
    if (!lookup_.ok()) return lookup_;
    return status.ok() ? ServeStatus() : refused(status);
  }

 private:
  Status decode_body() {
    if (body_.json_bytes && *body_.json_bytes > body_.bytes.size()) {
      return invalid("Inference-Header-Content-Length is {}; the body has only {} bytes", *body_.json_bytes,
                     body_.bytes.size());
    }
    LIMBER_TRY(in_.members("request", [this](std::string_view key) { return member(key); }));
    if (!in_.done()) return in_.unexpected("request", "nothing after the object");
    if (!has_inputs_) return invalid("request: 'inputs' is missing; expected an array of tensors");
    if (tail_at_ != tail_.size()) {
      return invalid("the body has {} bytes behind its JSON; the inputs' binary_data_size add up to {}",
                     tail_.size(), tail_at_);
    }
    to_.outputs.clear();
    for (const AnswerForm::Output& output : form_.outputs) to_.outputs.push_back(output.name);
    // What an output leaves open is decided by binary_data_output, which may come after the outputs.
    for (size_t i = 0; i < form_.outputs.size(); ++i) {
      if (!output_says_[i]) form_.outputs[i].binary = form_.binary;
    }
    return {};
  }

  static size_t json_size(const InferBody& body) {
    return std::min(body.json_bytes.value_or(body.bytes.size()), body.bytes.size());
  }

  Status member(std::string_view key) {
    if (key == "id") {
      LIMBER_ASSIGN(to_.id, in_.string("id"));
      return {};
    }
    if (key == "parameters") {
      return in_.members("parameters", [this](std::string_view name) { return parameter(name); });
    }
    if (key == "inputs") {
      if (has_inputs_) return invalid("request: 'inputs' is there twice");
      has_inputs_ = true;
      return in_.elements("inputs", [this](size_t index) { return input(index); });
    }
    if (key == "outputs") {
      return in_.elements("outputs", [this](size_t index) { return output(index); });
    }
    return in_.skip(key);
  }

  Status parameter(std::string_view name) {
    if (name == "timeout") {
      LIMBER_ASSIGN(const int64_t microseconds, in_.integer("parameters.timeout"));
      if (microseconds < 0)
        return invalid("parameters.timeout is {}; expected microseconds, 0 or more", microseconds);
      if (microseconds > 0) to_.deadline = to_.received + static_cast<double>(microseconds) * 1e-6;
      return {};
    }
    if (name == "binary_data_output") {
      LIMBER_ASSIGN(form_.binary, in_.boolean("parameters.binary_data_output"));
      return {};
    }
    return in_.skip(fmt::format("parameters.{}", excerpt(name)));
  }

  Status output(size_t index) {
    const std::string what = fmt::format("outputs[{}]", index);
    if (index >= kMaxInferOutputs) return invalid("outputs: more than {}", kMaxInferOutputs);
    AnswerForm::Output wanted;
    bool says = false;
    LIMBER_TRY(in_.members(what, [&](std::string_view key) -> Status {
      if (key == "name") {
        LIMBER_ASSIGN(wanted.name, in_.string(what + ".name"));
        return {};
      }
      if (key != "parameters") return in_.skip(what);
      return in_.members(what + ".parameters", [&](std::string_view name) -> Status {
        if (name == "classification" || name.starts_with("shared_memory")) {
          return invalid("{}.parameters.{} is not supported by this server; leave it out", what,
                         excerpt(name));
        }
        if (name != "binary_data") return in_.skip(what + ".parameters");
        LIMBER_ASSIGN(wanted.binary, in_.boolean(what + ".parameters.binary_data"));
        says = true;
        return {};
      });
    }));
    if (wanted.name.empty()) return invalid("{}: 'name' is missing; expected an output of the model", what);
    form_.outputs.push_back(std::move(wanted));
    output_says_.push_back(says);
    return {};
  }

  Status input(size_t index) {
    const std::string what = fmt::format("inputs[{}]", index);
    if (index >= kMaxInferInputs) return invalid("inputs: more than {}", kMaxInferInputs);
    InputFields fields;
    LIMBER_TRY(in_.members(what, [&](std::string_view key) { return input_member(what, key, fields); }));
    const char* after = in_.data();
    LIMBER_TRY(check_fields(what, fields));
    for (const InferInput& other : to_.inputs) {
      if (other.name == fields.name)
        return invalid("{}.name: '{}' is there twice", what, excerpt(fields.name));
    }
    InferInput made;
    LIMBER_TRY(fields.binary_size ? binary_data(what, fields, made) : json_data(what, fields, made));
    made.name = std::move(fields.name);
    to_.inputs.push_back(std::move(made));
    in_.move_to(after);
    return {};
  }

  Status input_member(const std::string& what, std::string_view key, InputFields& to) {
    if (key == "name") {
      LIMBER_ASSIGN(to.name, in_.string(what + ".name"));
      to.has_name = true;
      return {};
    }
    if (key == "datatype") {
      LIMBER_ASSIGN(to.datatype, in_.string(what + ".datatype"));
      return {};
    }
    if (key == "shape") return shape(what + ".shape", to);
    if (key == "parameters") return input_parameters(what + ".parameters", to);
    if (key != "data") return in_.skip(what);
    if (to.data) return invalid("{}: 'data' is there twice", what);
    in_.peek();
    to.data = in_.data();
    // Usually all that is needed to read the numbers is known by now.
    const auto dtype = parse_datatype(to.datatype);
    if (dtype && to.has_shape) return read_tensor(what, to);
    return pass_over_data(what + ".data");
  }

  Status read_tensor(const std::string& what, InputFields& fields) {
    in_.move_to(fields.data);
    // An element is a character at least, with one between it and the next.
    LIMBER_TRY(elements_of(what, fields, (in_.rest().size() + 1) / 2).status());
    fields.type = {*parse_datatype(fields.datatype), Shape::of(fields.shape)};
    LIMBER_ASSIGN(fields.tensor, read_json_tensor(in_, fields.type, what + ".data"));
    return {};
  }

  // Only finds the end of the array; what is in it is checked when it is read.
  Status pass_over_data(const std::string& what) {
    if (in_.peek() != '[') return in_.skip(what);
    const char* at = in_.data();
    for (int depth = 0; at != in_.end(); ++at) {
      if (*at == '"') {
        in_.move_to(at);
        LIMBER_TRY(in_.string(what).status());
        at = in_.data() - 1;
      } else if (*at == '[') {
        ++depth;
      } else if (*at == ']' && --depth == 0) {
        in_.move_to(at + 1);
        return {};
      }
    }
    return invalid("{}: the array has no end", what);
  }

  Status shape(const std::string& what, InputFields& to) {
    to.shape.clear();
    to.has_shape = true;
    return in_.elements(what, [&](size_t axis) -> Status {
      if (axis >= static_cast<size_t>(kMaxRank))
        return invalid("{}: more than {} dimensions", what, kMaxRank);
      LIMBER_ASSIGN(const int64_t dim, in_.integer(fmt::format("{}[{}]", what, axis)));
      if (dim < 0) return invalid("{}[{}] is {}; expected 0 or more", what, axis, dim);
      to.shape.push_back(dim);
      return {};
    });
  }

  Status input_parameters(const std::string& what, InputFields& to) {
    return in_.members(what, [&](std::string_view name) -> Status {
      if (name == "binary_data_size") {
        LIMBER_ASSIGN(to.binary_size, in_.integer(what + ".binary_data_size"));
        return {};
      }
      if (name == "content_type") {
        LIMBER_ASSIGN(to.content_type, in_.string(what + ".content_type"));
        return {};
      }
      if (name.starts_with("shared_memory")) {
        return invalid("{}.{} is not supported by this server; send the data", what, excerpt(name));
      }
      return in_.skip(what);
    });
  }

  Status check_fields(const std::string& what, const InputFields& fields) {
    if (!fields.has_name || fields.name.empty())
      return invalid("{}: 'name' is missing; expected an input of the model", what);
    if (fields.datatype.empty())
      return invalid("{}: 'datatype' is missing; expected {}", what, kDatatypeList);
    if (fields.datatype != kBytesDatatype && !parse_datatype(fields.datatype))
      return invalid("{}.datatype is '{}'; expected {}", what, excerpt(fields.datatype), kDatatypeList);
    if (!fields.has_shape) return invalid("{}: 'shape' is missing; expected an array of whole numbers", what);
    if (fields.data && fields.binary_size)
      return invalid("{}: both 'data' and parameters.binary_data_size; expected one of them", what);
    if (!fields.data && !fields.binary_size)
      return invalid("{}: 'data' is missing; expected an array, or parameters.binary_data_size", what);
    if (fields.datatype == kBytesDatatype) return check_images(what, fields);
    return {};
  }

  Status check_images(const std::string& what, const InputFields& fields) {
    ModelMetadata model;
    lookup_ = model_(model);
    if (!lookup_.ok()) return invalid("{}", lookup_.message);
    if (!model.takes_images) {
      return invalid("{}.datatype is BYTES; model '{}' takes numbers and no encoded images", what,
                     model.name);
    }
    if (!model.inputs.empty() && model.inputs[0].name != fields.name) {
      return invalid("{}.name is '{}'; encoded images are taken by input '{}' only", what,
                     excerpt(fields.name), model.inputs[0].name);
    }
    if (!fields.content_type.empty() && fields.content_type != "base64") {
      return invalid("{}.parameters.content_type is '{}'; expected 'base64'", what,
                     excerpt(fields.content_type));
    }
    return {};
  }

  // The number of elements, known to be at most `limit`.
  Result<int64_t> elements_of(const std::string& what, const InputFields& fields, size_t limit) const {
    const auto elements = checked_elements(fields.shape, std::numeric_limits<int32_t>::max());
    if (elements && static_cast<size_t>(*elements) <= limit) return *elements;
    return invalid("{}.shape is [{}]; its data have at most {} elements", what,
                   Shape::of(fields.shape).to_string(), limit);
  }

  Status json_data(const std::string& what, InputFields& fields, InferInput& to) {
    if (fields.datatype == kBytesDatatype) {
      in_.move_to(fields.data);
      LIMBER_TRY(elements_of(what, fields, std::min(in_.rest().size() / 2, kMaxImagesPerInput)).status());
      return json_images(what + ".data", fields, to);
    }
    // A type or shape that is there twice may have changed.
    const TensorType type{*parse_datatype(fields.datatype), Shape::of(fields.shape)};
    if (!fields.tensor.valid() || fields.type != type) LIMBER_TRY(read_tensor(what, fields));
    to.tensor = std::move(fields.tensor);
    return {};
  }

  Status json_images(const std::string& what, const InputFields& fields, InferInput& to) {
    LIMBER_ASSIGN(to.images, read_json_texts(in_, fields.shape, what));
    for (size_t i = 0; i < to.images.size(); ++i) {
      std::string_view text = to.images[i];
      // As browsers make it: data:image/png;base64,iVBO...
      if (text.starts_with("data:")) text.remove_prefix(std::min(text.size(), text.find(',') + 1));
      auto file = decode_base64(text);
      if (!file || file->empty()) {
        return invalid("{}: element {} is '{}'; expected the base64 of an image file", what, i,
                       excerpt(text));
      }
      to.images[i] = *std::move(file);
    }
    return {};
  }

  Status binary_data(const std::string& what, const InputFields& fields, InferInput& to) {
    const int64_t size = *fields.binary_size;
    const size_t left = tail_.size() - tail_at_;
    if (size < 0 || static_cast<uint64_t>(size) > left) {
      return invalid("{}.parameters.binary_data_size is {}; the body has {} bytes left{}", what, size, left,
                     body_.json_bytes ? "" : ", as there is no Inference-Header-Content-Length");
    }
    const std::string_view bytes = tail_.substr(tail_at_, static_cast<size_t>(size));
    tail_at_ += bytes.size();
    if (fields.datatype == kBytesDatatype) return binary_images(what, fields, bytes, to);
    const DType dtype = *parse_datatype(fields.datatype);
    const auto elements = checked_elements(fields.shape, std::numeric_limits<int32_t>::max());
    if (!elements || static_cast<size_t>(*elements) * dtype_size(dtype) != bytes.size()) {
      return invalid("{}.parameters.binary_data_size is {}; {} of shape [{}] needs {}", what, size,
                     fields.datatype, Shape::of(fields.shape).to_string(),
                     elements ? fmt::format("{}", static_cast<size_t>(*elements) * dtype_size(dtype))
                              : std::string("more than this server takes"));
    }
    LIMBER_ASSIGN(to.tensor, binary_tensor({dtype, Shape::of(fields.shape)}, bytes));
    return {};
  }

  Result<Tensor> binary_tensor(TensorType type, std::string_view bytes) const {
    const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % dtype_size(type.dtype) == 0;
    // A bool that is neither 0 nor 1 is none to C++, so these are always copied.
    if (body_.owner && aligned && type.dtype != DType::kBool && !bytes.empty())
      return Tensor(std::move(type), Buffer::borrow(bytes.data(), bytes.size(), body_.owner));
    LIMBER_ASSIGN(Tensor tensor, Tensor::allocate(std::move(type)));
    if (!bytes.empty()) std::memcpy(tensor.raw(), bytes.data(), bytes.size());
    if (tensor.dtype() == DType::kBool) {
      auto* flags = static_cast<uint8_t*>(tensor.raw());
      for (int64_t i = 0; i < tensor.elements(); ++i) flags[i] = flags[i] != 0;
    }
    return tensor;
  }

  // Each with its length in front, four bytes, the lowest first.
  Status binary_images(const std::string& what, const InputFields& fields, std::string_view bytes,
                       InferInput& to) const {
    LIMBER_ASSIGN(const int64_t elements,
                  elements_of(what, fields, std::min(bytes.size() / 4, kMaxImagesPerInput)));
    for (int64_t i = 0; i < elements; ++i) {
      uint32_t length = 0;
      if (bytes.size() >= 4) std::memcpy(&length, bytes.data(), 4);
      if (bytes.size() < 4 || length > bytes.size() - 4) {
        return invalid("{}: element {} has {} bytes by its length; {} are left", what, i, length,
                       bytes.size());
      }
      if (length == 0) return invalid("{}: element {} is empty; expected an image file", what, i);
      to.images.emplace_back(bytes.substr(4, length));
      bytes.remove_prefix(4 + length);
    }
    if (!bytes.empty())
      return invalid("{}: {} bytes are left after its {} elements", what, bytes.size(), elements);
    return {};
  }

  const InferBody& body_;
  const MetadataOf& model_;
  InferRequest& to_;
  AnswerForm& form_;
  JsonReader in_;
  std::string_view tail_;
  size_t tail_at_ = 0;
  bool has_inputs_ = false;
  ServeStatus lookup_;  // why the model's metadata are not to be had
  std::vector<bool> output_says_;
};

}  // namespace

bool AnswerForm::binary_of(std::string_view output) const {
  for (const Output& named : outputs) {
    if (named.name == output) return named.binary;
  }
  return binary;
}

ServeStatus decode_infer_request(const InferBody& body, const MetadataOf& model, InferRequest& to,
                                 AnswerForm& form) {
  return RequestDecoder(body, model, to, form).decode();
}

ServeStatus decode_image_request(std::string_view file, const MetadataOf& model, InferRequest& to) {
  ModelMetadata metadata;
  if (ServeStatus status = model(metadata); !status.ok()) return status;
  if (!metadata.takes_images) {
    return {
        Refusal::kBadRequest,
        fmt::format("the body is an image; model '{}' takes numbers and no encoded images", metadata.name)};
  }
  if (file.empty()) return {Refusal::kBadRequest, "the body is empty; expected an image file"};
  InferInput input;
  if (!metadata.inputs.empty()) input.name = metadata.inputs[0].name;
  input.images.emplace_back(file);
  to.inputs.push_back(std::move(input));
  return {};
}

}  // namespace limber
