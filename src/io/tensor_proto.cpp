// TensorProto to Tensor, and element types in both directions.
#include <bit>
#include <charconv>
#include <filesystem>

#include "io/importer.h"

static_assert(std::endian::native == std::endian::little, "raw_data and external files are little endian");

namespace limber::onnx_io {

using onnx::TensorProto;

std::optional<DType> dtype_from_onnx(int64_t data_type) {
  switch (data_type) {
    case TensorProto::FLOAT:
      return DType::kF32;
    case TensorProto::DOUBLE:
      return DType::kF64;
    case TensorProto::FLOAT16:
      return DType::kF16;
    case TensorProto::BFLOAT16:
      return DType::kBF16;
    case TensorProto::INT8:
      return DType::kI8;
    case TensorProto::UINT8:
      return DType::kU8;
    case TensorProto::INT16:
      return DType::kI16;
    case TensorProto::UINT16:
      return DType::kU16;
    case TensorProto::INT32:
      return DType::kI32;
    case TensorProto::UINT32:
      return DType::kU32;
    case TensorProto::INT64:
      return DType::kI64;
    case TensorProto::UINT64:
      return DType::kU64;
    case TensorProto::BOOL:
      return DType::kBool;
    default:
      return std::nullopt;
  }
}

int32_t dtype_to_onnx(DType dtype) {
  for (int32_t type = TensorProto::FLOAT; type <= TensorProto::BFLOAT16; ++type) {
    if (dtype_from_onnx(type) == dtype) return type;
  }
  LIMBER_UNREACHABLE();
}

std::string onnx_type_name(int64_t data_type) {
  const int narrow = static_cast<int>(data_type);
  if (narrow == data_type && TensorProto::DataType_IsValid(narrow)) {
    return TensorProto::DataType_Name(static_cast<TensorProto::DataType>(narrow));
  }
  return fmt::format("number {}", data_type);
}

namespace {

Result<TensorType> declared_type(const TensorProto& proto, size_t max_bytes) {
  const auto dtype = dtype_from_onnx(proto.data_type());
  if (!dtype) return unsupported("elements of type {}", onnx_type_name(proto.data_type()));
  if (proto.has_segment()) return unsupported("a tensor in segments");
  if (proto.dims_size() > kMaxRank)
    return unsupported("rank {}, at most {} is possible", proto.dims_size(), kMaxRank);
  const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  const auto limit = static_cast<int64_t>(max_bytes / dtype_size(*dtype));
  if (!checked_elements(dims, limit)) {
    return corrupt("shape [{}] has a negative dimension or more than {} bytes", Shape::of(dims).to_string(),
                   max_bytes);
  }
  return TensorType{*dtype, Shape::of(dims)};
}

// How many of the typed fields hold something.
int typed_fields(const TensorProto& p) {
  return (p.float_data_size() > 0) + (p.int32_data_size() > 0) + (p.int64_data_size() > 0) +
         (p.double_data_size() > 0) + (p.uint64_data_size() > 0) + (p.string_data_size() > 0);
}

template <typename T, typename Field>
Result<Tensor> from_field(const Field& field, const TensorType& type) {
  if (field.size() != type.shape.elements()) {
    return corrupt("{} holds {} elements, the file has {}", type.to_string(), type.shape.elements(),
                   field.size());
  }
  LIMBER_ASSIGN(Tensor tensor, Tensor::allocate(type));
  auto* out = static_cast<std::byte*>(tensor.raw());
  for (const auto& element : field) {
    const T value = static_cast<T>(element);
    std::memcpy(out, &value, sizeof(T));
    out += sizeof(T);
  }
  return tensor;
}

Result<Tensor> from_typed_field(const TensorProto& p, const TensorType& type) {
  switch (type.dtype) {
    case DType::kF32:
      return from_field<float>(p.float_data(), type);
    case DType::kF64:
      return from_field<double>(p.double_data(), type);
    case DType::kF16:
    case DType::kBF16:
    case DType::kU16:
      return from_field<uint16_t>(p.int32_data(), type);
    case DType::kI8:
      return from_field<int8_t>(p.int32_data(), type);
    case DType::kU8:
      return from_field<uint8_t>(p.int32_data(), type);
    case DType::kI16:
      return from_field<int16_t>(p.int32_data(), type);
    case DType::kI32:
      return from_field<int32_t>(p.int32_data(), type);
    case DType::kBool:
      return from_field<bool>(p.int32_data(), type);
    case DType::kI64:
      return from_field<int64_t>(p.int64_data(), type);
    case DType::kU32:
      return from_field<uint32_t>(p.uint64_data(), type);
    case DType::kU64:
      return from_field<uint64_t>(p.uint64_data(), type);
  }
  LIMBER_UNREACHABLE();
}

Status check_size(const TensorType& type, size_t bytes) {
  if (bytes == type.bytes()) return {};
  return corrupt("{} needs {} bytes, the file has {}", type.to_string(), type.bytes(), bytes);
}

Result<Tensor> copied(const TensorType& type, const std::byte* bytes) {
  LIMBER_ASSIGN(Tensor tensor, Tensor::allocate(type));
  if (tensor.bytes() > 0) std::memcpy(tensor.raw(), bytes, tensor.bytes());
  if (type.dtype == DType::kBool) {
    auto* flags = static_cast<uint8_t*>(tensor.raw());
    for (int64_t i = 0; i < tensor.elements(); ++i) flags[i] = flags[i] != 0;
  }
  return tensor;
}

Result<uint64_t> parse_offset(const std::string& key, const std::string& text) {
  uint64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size()) {
    return corrupt("external data: {} is '{}', not a number", key, text);
  }
  return value;
}

struct ExternalSpan {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

Result<ExternalSpan> external_span(const TensorProto& proto) {
  ExternalSpan span;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") span.location = entry.value();
    if (entry.key() == "offset") {
      LIMBER_ASSIGN(span.offset, parse_offset("offset", entry.value()));
    }
    if (entry.key() == "length") {
      LIMBER_ASSIGN(span.length, parse_offset("length", entry.value()));
    }
  }
  return span;
}

// The file that `location` names, which must lie below `folder` also after links are followed.
Result<std::string> path_inside(const std::string& folder, const std::string& location) {
  namespace fs = std::filesystem;
  const fs::path relative(location);
  const auto refused = [&] { return corrupt("external data '{}': not inside the model's folder", location); };
  if (location.empty() || location.find('\0') != std::string::npos || relative.is_absolute())
    return refused();
  for (const fs::path& part : relative) {
    if (part == "..") return refused();
  }
  std::error_code ec;
  const fs::path root = fs::canonical(folder, ec);
  if (ec) return error(Code::kIo, "{}: {}", folder, ec.message());
  const fs::path full = fs::canonical(root / relative, ec);
  if (ec) return error(Code::kNotFound, "external data '{}': {}", location, ec.message());
  const auto [end, at] = std::mismatch(root.begin(), root.end(), full.begin(), full.end());
  if (end != root.end()) return refused();
  return full.string();
}

}  // namespace

Result<Tensor> TensorReader::read(const TensorProto& proto, std::span<const std::byte> raw,
                                  const std::shared_ptr<const void>& owner) {
  LIMBER_ASSIGN(TensorType type, declared_type(proto, max_bytes_));
  if (raw.empty()) raw = std::as_bytes(std::span(proto.raw_data()));
  const int fields = typed_fields(proto) + (raw.empty() ? 0 : 1);
  if (proto.data_location() == TensorProto::EXTERNAL) {
    if (fields != 0) return corrupt("both inline and external data");
    return read_external(proto, std::move(type));
  }
  if (fields > 1) return corrupt("data in more than one field");
  if (typed_fields(proto) > 0) return from_typed_field(proto, type);
  LIMBER_TRY(check_size(type, raw.size()));
  const bool stays = owner != nullptr && is_float(type.dtype) && raw.size() >= kLargeTensor;
  if (stays) return Tensor(type, Buffer::borrow(raw.data(), raw.size(), owner));
  return copied(type, raw.data());
}

Result<std::shared_ptr<const MappedFile>> TensorReader::open(const std::string& location) {
  if (const auto it = files_.find(location); it != files_.end()) return it->second;
  if (folder_.empty())
    return unsupported("external data '{}': only a model read from a file has it", location);
  LIMBER_ASSIGN(const std::string path, path_inside(folder_, location));
  LIMBER_ASSIGN(auto file, os_files().map(path));
  files_.emplace(location, file);
  return file;
}

Result<Tensor> TensorReader::read_external(const TensorProto& proto, TensorType type) {
  LIMBER_ASSIGN(const ExternalSpan span, external_span(proto));
  LIMBER_ASSIGN(const auto file, open(span.location));
  const auto bytes = file->bytes();
  if (span.offset > bytes.size() || type.bytes() > bytes.size() - span.offset) {
    return corrupt("external data '{}': {} bytes at {} are outside the file of {}", span.location,
                   type.bytes(), span.offset, bytes.size());
  }
  if (span.length) LIMBER_TRY(check_size(type, *span.length));
  const std::byte* start = bytes.data() + span.offset;
  const bool aligned = reinterpret_cast<uintptr_t>(start) % dtype_size(type.dtype) == 0;
  const bool stays = aligned || (is_float(type.dtype) && type.bytes() >= kLargeTensor);
  if (!stays || type.dtype == DType::kBool || type.bytes() == 0) return copied(type, start);
  return Tensor(type, Buffer::borrow(start, type.bytes(), file));
}

}  // namespace limber::onnx_io
