#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <iterator>

#include "base/hash.h"
#include "ir/graph.h"
#include "ir/text_format.h"

namespace limber {
namespace text {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

uint64_t constant_hash(const Tensor& tensor) {
  Hasher hasher;
  hasher.add(tensor.type().to_string());
  hasher.add(std::string_view(static_cast<const char*>(tensor.raw()), tensor.bytes()));
  return hasher.digest();
}

}  // namespace text

namespace {

// The shortest digits that read back as the same number; always looks like a float. `bits` tells
// the usual NaN from others.
template <typename Float>
std::string float_text(Float value, uint64_t bits, uint64_t usual_nan) {
  if (std::isnan(value)) return bits == usual_nan ? "nan" : fmt::format("nan(0x{:x})", bits);
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".ein") == std::string::npos) text += ".0";
  return text;
}

std::string float_text(double value) {
  return float_text(value, std::bit_cast<uint64_t>(value), 0x7ff8000000000000);
}

template <typename T>
T load(const Tensor& tensor, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(tensor.raw()) + static_cast<size_t>(index) * sizeof(T),
              sizeof(T));
  return value;
}

std::string element_text(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::kF32: {
      const auto bits = load<uint32_t>(tensor, i);
      return float_text(std::bit_cast<float>(bits), bits, 0x7fc00000);
    }
    case DType::kF64:
      return float_text(load<double>(tensor, i));
    case DType::kF16: {
      const auto bits = load<uint16_t>(tensor, i);
      return float_text(half_to_float(bits), bits, 0x7e00);
    }
    case DType::kBF16: {
      const auto bits = load<uint16_t>(tensor, i);
      return float_text(bfloat16_to_float(bits), bits, 0x7fc0);
    }
    case DType::kU64:
      return fmt::format("{}", load<uint64_t>(tensor, i));
    case DType::kBool:
      return load<uint8_t>(tensor, i) != 0 ? "true" : "false";
    default:
      return fmt::format("{}", element_as_int(tensor, i));
  }
}

template <typename List, typename ToText>
std::string joined(const List& list, std::string_view separator, const ToText& to_text) {
  std::string out;
  for (const auto& item : list) {
    if (!out.empty()) out += separator;
    out += to_text(item);
  }
  return out;
}

struct AttrText {
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return float_text(value); }
  std::string operator()(const std::string& value) const { return text::quoted(value); }
  std::string operator()(const std::vector<int64_t>& values) const {
    return fmt::format("[{}]", joined(values, ",", *this));
  }
  std::string operator()(const std::vector<double>& values) const {
    return fmt::format("[{}]{}", joined(values, ",", *this), values.empty() ? "f" : "");
  }
  std::string operator()(const Shape& shape) const { return fmt::format("<{}>", shape.to_string()); }
};

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph) {}

  std::string run() {
    line("graph {} {{", text::quoted(graph_.name));
    for (ValueId v : graph_.inputs()) line("  input {}", typed(v));
    for (uint32_t v = 0; v < graph_.num_values(); ++v) stored(ValueId{v});
    for (const Node& n : graph_.nodes()) node(n);
    for (const Output& o : graph_.outputs()) {
      const std::string rows = o.rows == kNoValue ? "" : fmt::format(" rows {}", name(o.rows));
      const std::string into = o.into == kNoValue ? "" : fmt::format(" into {}", name(o.into));
      line("  output {} as {}{}{}", name(o.value), text::quoted(o.name), rows, into);
    }
    line("}}");
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  static std::string word(const std::string& plain) {
    return text::is_bare_name(plain) ? plain : text::quoted(plain);
  }

  std::string name(ValueId v) const {
    if (v == kNoValue) return "_";
    return fmt::format("%{}", word(graph_.value(v).name));
  }

  std::string typed(ValueId v) const {
    return v == kNoValue ? "_" : fmt::format("{}: {}", name(v), graph_.type(v).to_string());
  }

  void stored(ValueId v) {
    const Value& value = graph_.value(v);
    if (value.role == Role::kParameter) line("  param {}", typed(v));
    if (value.role == Role::kState) line("  state {}", typed(v));
    if (value.role != Role::kConstant) return;
    const Tensor& constant = value.constant;
    if (constant.elements() > text::kMaxInlineElements) {
      return line("  const {} = #{:016x}", typed(v), text::constant_hash(constant));
    }
    std::string elements;
    for (int64_t i = 0; i < constant.elements(); ++i) {
      if (i > 0) elements += ", ";
      elements += element_text(constant, i);
    }
    line("  const {} = {{{}}}", typed(v), elements);
  }

  void node(const Node& node) {
    const auto type_text = [this](ValueId v) { return typed(v); };
    const auto name_text = [this](ValueId v) { return name(v); };
    std::string text = node.outputs.empty() ? "()" : joined(node.outputs, ", ", type_text);
    text += fmt::format(" = {}({})", op_name(node.op), joined(node.inputs, ", ", name_text));
    if (!node.attrs.entries().empty()) {
      const auto attr_text = [](const auto& entry) {
        return fmt::format("{}={}", word(entry.first), std::visit(AttrText{}, entry.second));
      };
      text += fmt::format(" {{{}}}", joined(node.attrs.entries(), ", ", attr_text));
    }
    if (!node.name.empty()) text += fmt::format(" {}", text::quoted(node.name));
    line("  {}", text);
  }

  const Graph& graph_;
  std::string out_;
};

}  // namespace

std::string print(const Graph& graph) { return Printer(graph).run(); }

}  // namespace limber
