#include "io/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/file.h"

namespace limber {
namespace {

using nlohmann::json;

constexpr size_t kMaxHeader = 100'000'000;  // the limit of the reference implementation
constexpr std::pair<std::string_view, DType> kTypes[] = {
    {"F32", DType::kF32},  {"F64", DType::kF64}, {"F16", DType::kF16}, {"BF16", DType::kBF16},
    {"I8", DType::kI8},    {"U8", DType::kU8},   {"I16", DType::kI16}, {"U16", DType::kU16},
    {"I32", DType::kI32},  {"U32", DType::kU32}, {"I64", DType::kI64}, {"U64", DType::kU64},
    {"BOOL", DType::kBool}};

struct Entry {
  std::string name;
  TensorType type;
  uint64_t begin = 0, end = 0;
};

// Refuses nesting deeper than the format has, before it can cost anything, and names given twice.
class DepthGuard {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (depth > 4) too_deep = true;
    if (event == json::parse_event_t::key && depth == 1) {
      const auto* name = parsed.get_ptr<const std::string*>();
      twice = twice || name == nullptr || !names.insert(*name).second;
    }
    return !too_deep;
  }
  std::set<std::string> names;
  bool too_deep = false, twice = false;
};

Result<Entry> parse_entry(const std::string& name, const json& value, size_t data_bytes) {
  const auto bad = [&](std::string_view why) { return corrupt("tensor '{}': {}", name, why); };
  if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets")) {
    return bad("needs dtype, shape and data_offsets");
  }
  const json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
  if (!dtype.is_string() || !shape.is_array() || !offsets.is_array() || offsets.size() != 2)
    return bad("malformed");
  Entry entry{.name = name};
  const auto known = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) {
    return t.first == dtype.get_ref<const std::string&>();
  });
  if (known == std::end(kTypes)) return unsupported("tensor '{}': dtype {}", name, dtype.get<std::string>());
  entry.type.dtype = known->second;
  if (shape.size() > kMaxRank) return unsupported("tensor '{}': rank {}", name, shape.size());
  std::vector<int64_t> dims;
  for (const json& d : shape) {
    if (!d.is_number_unsigned() || d.get<uint64_t>() > INT64_MAX)
      return bad("a dimension is not a natural number");
    dims.push_back(d.get<int64_t>());
  }
  if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
    return bad("offsets are no natural numbers");
  entry.begin = offsets[0].get<uint64_t>();
  entry.end = offsets[1].get<uint64_t>();
  if (entry.begin > entry.end || entry.end > data_bytes) return bad("offsets outside the file");
  const size_t size = dtype_size(entry.type.dtype);
  const auto elements = checked_elements(dims, static_cast<int64_t>(data_bytes / size));
  if (!elements || static_cast<uint64_t>(*elements) * size != entry.end - entry.begin) {
    return bad("its shape does not match its offsets");
  }
  entry.type.shape = Shape::of(dims);
  return entry;
}

// Tensors must cover the data without overlaps or holes.
Status check_layout(std::vector<Entry>& entries, size_t data_bytes) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t at = 0;
  for (const Entry& e : entries) {
    if (e.begin != at) return corrupt("tensor '{}' starts at {}, expected {}", e.name, e.begin, at);
    at = e.end;
  }
  if (at != data_bytes) return corrupt("{} bytes of data, tensors cover {}", data_bytes, at);
  return {};
}

Result<Tensor> make_tensor(const Entry& entry, const std::byte* data,
                           const std::shared_ptr<const void>& owner) {
  const std::byte* start = data + entry.begin;
  const bool aligned = reinterpret_cast<uintptr_t>(start) % dtype_size(entry.type.dtype) == 0;
  if (owner != nullptr && aligned && entry.type.dtype != DType::kBool && entry.type.bytes() > 0) {
    return Tensor(entry.type, Buffer::borrow(start, entry.type.bytes(), owner));
  }
  LIMBER_ASSIGN(Tensor tensor, Tensor::allocate(entry.type));
  if (tensor.bytes() > 0) std::memcpy(tensor.raw(), start, tensor.bytes());
  if (tensor.dtype() == DType::kBool) {
    auto* flags = static_cast<uint8_t*>(tensor.raw());
    for (int64_t i = 0; i < tensor.elements(); ++i) flags[i] = flags[i] != 0;
  }
  return tensor;
}

Status parse_metadata(const json& value, TensorFile& file) {
  if (!value.is_object()) return corrupt("__metadata__ is not an object");
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) return corrupt("__metadata__ '{}' is not a string", key);
    file.metadata.emplace(key, text.get<std::string>());
  }
  return {};
}

}  // namespace

Result<TensorFile> parse_safetensors(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (bytes.size() < 8) return corrupt("not a safetensors file: {} bytes", bytes.size());
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > kMaxHeader || length > bytes.size() - 8)
    return corrupt("safetensors header of {} bytes", length);
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + 8;
  DepthGuard guard;
  const json header = json::parse(text, text + length, std::ref(guard), /*allow_exceptions=*/false);
  if (guard.too_deep || guard.twice || !header.is_object()) return corrupt("safetensors header is malformed");
  const auto data = bytes.subspan(8 + length);

  TensorFile file;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      LIMBER_TRY(parse_metadata(value, file));
      continue;
    }
    LIMBER_ASSIGN(Entry entry, parse_entry(name, value, data.size()));
    entries.push_back(std::move(entry));
  }
  LIMBER_TRY(check_layout(entries, data.size()));
  for (const Entry& entry : entries) {
    LIMBER_ASSIGN(Tensor tensor, make_tensor(entry, data.data(), owner));
    file.tensors.emplace(entry.name, std::move(tensor));
  }
  return file;
}

Result<TensorFile> read_safetensors(const std::string& path) {
  LIMBER_ASSIGN(const auto mapped, os_files().map(path));
  auto file = parse_safetensors(mapped->bytes(), mapped);
  if (!file.ok()) return file.status().in(path);
  return file;
}

namespace {

// A file about to be written: its header and, in order, the tensors that follow.
struct Plan {
  std::string header;
  std::vector<const Tensor*> tensors;
  std::map<std::string, uint64_t> offsets;  // in the file
};

Result<Plan> plan_file(const TensorFile& file) {
  // Larger elements first, so that all are aligned without holes, which the format forbids.
  std::vector<const std::pair<const std::string, Tensor>*> order;
  for (const auto& entry : file.tensors) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return dtype_size(a->second.dtype()) > dtype_size(b->second.dtype());
  });
  Plan plan;
  json header = json::object();
  if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
  uint64_t offset = 0;
  for (const auto* entry : order) {
    const Tensor& tensor = entry->second;
    if (entry->first == "__metadata__") return invalid("a tensor cannot be called '__metadata__'");
    const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&](const auto& t) { return t.second == tensor.dtype(); });
    header[entry->first] = {{"dtype", type->first},
                            {"shape", tensor.shape().dims()},
                            {"data_offsets", {offset, offset + tensor.bytes()}}};
    plan.tensors.push_back(&tensor);
    plan.offsets[entry->first] = offset;
    offset += tensor.bytes();
  }
  std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
  text.resize((8 + text.size() + 63) / 64 * 64 - 8, ' ');
  const uint64_t length = text.size();
  plan.header.resize(8);
  std::memcpy(plan.header.data(), &length, sizeof(length));
  plan.header += text;
  for (auto& [name, at] : plan.offsets) at += plan.header.size();
  return plan;
}

std::vector<std::string_view> parts_of(const Plan& plan) {
  std::vector<std::string_view> parts = {plan.header};
  for (const Tensor* tensor : plan.tensors)
    parts.emplace_back(static_cast<const char*>(tensor->raw()), tensor->bytes());
  return parts;
}

}  // namespace

Result<std::map<std::string, uint64_t>> safetensors_offsets(const TensorFile& file) {
  LIMBER_ASSIGN(Plan plan, plan_file(file));
  return std::move(plan.offsets);
}

Status give_safetensors(const TensorFile& file,
                        const std::function<Status(std::span<const std::string_view>)>& sink) {
  LIMBER_ASSIGN(const Plan plan, plan_file(file));
  return sink(parts_of(plan));
}

Result<std::string> format_safetensors(const TensorFile& file) {
  std::string out;
  LIMBER_TRY(give_safetensors(file, [&](std::span<const std::string_view> parts) {
    for (const std::string_view part : parts) out += part;
    return Status();
  }));
  return out;
}

Status write_safetensors(const std::string& path, const TensorFile& file, const FileSystem& files) {
  return give_safetensors(file, [&](auto parts) { return files.write(path, parts); });
}

}  // namespace limber
