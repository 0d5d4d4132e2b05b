// The wire format of protobuf, as far as it is needed to find raw_data: fields with a number and a type,
// nested messages with their length in front.
#include "io/wire.h"

#include <cstdint>

namespace limber::onnx_io {
namespace {

using Bytes = std::span<const std::byte>;

// Numbers of fields in onnx.proto.
constexpr uint32_t kModelGraph = 7, kGraphInitializer = 5, kTensorRawData = 9;
constexpr uint32_t kModelMetadata = 14, kEntryKey = 1, kEntryValue = 2;

enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

struct Field {
  uint32_t number = 0;
  Wire wire = Wire::kVarint;
  Bytes whole;    // with its tag
  Bytes content;  // of kLength
};

// Reads the fields of a message one by one.
class Fields {
 public:
  explicit Fields(Bytes message) : left_(message) {}

  bool done() const { return left_.empty(); }

  std::optional<Field> next() {
    const Bytes start = left_;
    const auto tag = varint();
    if (!tag || *tag > UINT32_MAX || *tag >> 3 == 0) return std::nullopt;
    Field field{.number = static_cast<uint32_t>(*tag >> 3), .wire = static_cast<Wire>(*tag & 7)};
    switch (field.wire) {
      case Wire::kVarint:
        if (!varint()) return std::nullopt;
        break;
      case Wire::kFixed64:
        if (!take(8)) return std::nullopt;
        break;
      case Wire::kFixed32:
        if (!take(4)) return std::nullopt;
        break;
      case Wire::kLength: {
        const auto length = varint();
        if (!length) return std::nullopt;
        const auto content = take(*length);
        if (!content) return std::nullopt;
        field.content = *content;
        break;
      }
      default:
        return std::nullopt;
    }
    field.whole = start.first(start.size() - left_.size());
    return field;
  }

 private:
  std::optional<Bytes> take(uint64_t bytes) {
    if (bytes > left_.size()) return std::nullopt;
    const Bytes taken = left_.first(static_cast<size_t>(bytes));
    left_ = left_.subspan(static_cast<size_t>(bytes));
    return taken;
  }

  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = take(1);
      if (!byte) return std::nullopt;
      const auto bits = std::to_integer<uint64_t>(byte->front());
      if (shift == 63 && bits > 1) return std::nullopt;
      value |= (bits & 0x7f) << shift;
      if (bits < 0x80) return value;
    }
    return std::nullopt;
  }

  Bytes left_;
};

void append(std::string& out, Bytes bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>((value & 0x7f) | 0x80));
  out.push_back(static_cast<char>(value));
}

void append_message(std::string& out, uint32_t number, const std::string& message) {
  append_varint(out, (number << 3) | static_cast<uint32_t>(Wire::kLength));
  append_varint(out, message.size());
  out += message;
}

bool is(const Field& field, uint32_t number) { return field.number == number && field.wire == Wire::kLength; }

struct SplitTensor {
  std::string rest;
  Bytes raw;
};

std::optional<SplitTensor> split_tensor(Bytes tensor, size_t least) {
  SplitTensor split;
  bool seen = false;
  for (Fields fields(tensor); !fields.done();) {
    const auto field = fields.next();
    if (!field) return std::nullopt;
    if (is(*field, kTensorRawData)) {
      if (seen) return std::nullopt;
      seen = true;
      if (field->content.size() >= least) {
        split.raw = field->content;
        continue;
      }
    }
    append(split.rest, field->whole);
  }
  return split;
}

// Appends to `raw`; returns what is left of the graph.
std::optional<std::string> split_graph(Bytes graph, size_t least, std::vector<Bytes>& raw) {
  std::string rest;
  for (Fields fields(graph); !fields.done();) {
    const auto field = fields.next();
    if (!field) return std::nullopt;
    if (!is(*field, kGraphInitializer)) {
      append(rest, field->whole);
      continue;
    }
    const auto tensor = split_tensor(field->content, least);
    if (!tensor) return std::nullopt;
    append_message(rest, kGraphInitializer, tensor->rest);
    raw.push_back(tensor->raw);
  }
  return rest;
}

}  // namespace

std::optional<SplitModel> split_model(std::span<const std::byte> model, size_t least) {
  SplitModel split;
  for (Fields fields(model); !fields.done();) {
    const auto field = fields.next();
    if (!field) return std::nullopt;
    if (!is(*field, kModelGraph)) {
      append(split.rest, field->whole);
      continue;
    }
    const auto graph = split_graph(field->content, least, split.raw);
    if (!graph) return std::nullopt;
    append_message(split.rest, kModelGraph, *graph);
  }
  return split;
}

std::optional<std::map<std::string, std::string>> model_metadata(std::span<const std::byte> model) {
  std::map<std::string, std::string> texts;
  for (Fields fields(model); !fields.done();) {
    const auto field = fields.next();
    if (!field) return std::nullopt;
    if (field->number != kModelMetadata || field->wire != Wire::kLength) continue;
    std::string key, value;
    for (Fields entry(field->content); !entry.done();) {
      const auto part = entry.next();
      if (!part) return std::nullopt;
      const std::string text(reinterpret_cast<const char*>(part->content.data()), part->content.size());
      if (part->number == kEntryKey) key = text;
      if (part->number == kEntryValue) value = text;
    }
    texts[key] = value;
  }
  return texts;
}

}  // namespace limber::onnx_io
