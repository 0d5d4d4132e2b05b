#include "tensor/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"

namespace limber {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = 64 * 1024;

// Without the byte order in front: '<' little, '>' big, '|' where there is none.
constexpr std::pair<std::string_view, DType> kTypes[] = {
    {"f4", DType::kF32}, {"f8", DType::kF64}, {"f2", DType::kF16}, {"i1", DType::kI8},
    {"u1", DType::kU8},  {"i2", DType::kI16}, {"u2", DType::kU16}, {"i4", DType::kI32},
    {"u4", DType::kU32}, {"i8", DType::kI64}, {"u8", DType::kU64}, {"b1", DType::kBool}};

// The header is a Python dictionary; this reads the few forms that NumPy writes.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  struct Header {
    std::string_view descr;
    bool fortran = false;
    std::vector<int64_t> shape;
  };

  Result<Header> parse() {
    Header header;
    bool have_descr = false, have_order = false, have_shape = false;
    if (!take("{")) return malformed();
    while (!take("}")) {
      const auto key = string();
      if (!key || !take(":")) return malformed();
      if (*key == "descr") {
        const auto value = string();
        if (!value) return unsupported("structured .npy arrays");
        header.descr = *value;
        have_descr = true;
      } else if (*key == "fortran_order") {
        header.fortran = take("True");
        if (!header.fortran && !take("False")) return malformed();
        have_order = true;
      } else if (*key == "shape") {
        if (!tuple(header.shape)) return malformed();
        have_shape = true;
      } else {
        return malformed();
      }
      if (!take(",") && peek() != '}') return malformed();
    }
    if (!have_descr || !have_order || !have_shape) return malformed();
    return header;
  }

 private:
  Status malformed() const { return corrupt(".npy header is malformed at byte {}", at_); }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(std::string_view word) {
    peek();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::optional<std::string_view> string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const auto value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }
  bool tuple(std::vector<int64_t>& out) {
    if (!take("(")) return false;
    while (!take(")")) {
      peek();
      int64_t value = 0;
      const char* begin = text_.data() + at_;
      const auto [end, ec] = std::from_chars(begin, text_.data() + text_.size(), value);
      if (ec != std::errc() || out.size() > kMaxRank) return false;
      at_ += static_cast<size_t>(end - begin);
      out.push_back(value);
      if (!take(",") && peek() != ')') return false;
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

size_t little_endian(std::string_view bytes) {
  size_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Copies from column-major to row-major.
void from_fortran(const char* from, Tensor& to) {
  const std::vector<int64_t> dims = to.shape().dims();
  const size_t size = dtype_size(to.dtype());
  std::vector<int64_t> index(dims.size(), 0), step(dims.size(), 1);
  for (size_t i = 1; i < dims.size(); ++i) step[i] = step[i - 1] * dims[i - 1];
  auto* out = static_cast<char*>(to.raw());
  for (int64_t n = to.elements(); n > 0; --n, out += size) {
    int64_t offset = 0;
    for (size_t i = 0; i < dims.size(); ++i) offset += index[i] * step[i];
    std::memcpy(out, from + static_cast<size_t>(offset) * size, size);
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
}

std::optional<DType> dtype_of(std::string_view descr) {
  if (descr.size() != 3 || std::string_view("<>|").find(descr[0]) == std::string_view::npos)
    return std::nullopt;
  for (const auto& [name, dtype] : kTypes) {
    if (name == descr.substr(1) && (descr[0] != '|' || dtype_size(dtype) == 1)) return dtype;
  }
  return std::nullopt;
}

void reverse_bytes(Tensor& tensor) {
  const size_t size = dtype_size(tensor.dtype());
  auto* bytes = static_cast<char*>(tensor.raw());
  for (size_t at = 0; at < tensor.bytes(); at += size) std::reverse(bytes + at, bytes + at + size);
}

Result<TensorType> type_of(const HeaderParser::Header& header, size_t bytes_present) {
  const auto dtype = dtype_of(header.descr);
  if (!dtype) {
    return unsupported(
        ".npy elements of type '{}'; floats, integers and bool are read: convert the array, as with astype "
        "in "
        "numpy",
        header.descr);
  }
  if (header.shape.size() > kMaxRank) return unsupported("an .npy array of rank {}", header.shape.size());
  const auto limit = static_cast<int64_t>(bytes_present / dtype_size(*dtype));
  const auto elements = checked_elements(header.shape, limit);
  if (!elements || static_cast<size_t>(*elements) * dtype_size(*dtype) != bytes_present) {
    return corrupt(".npy array of shape ({}) with {} bytes of data", Shape::of(header.shape).to_string(),
                   bytes_present);
  }
  return TensorType{*dtype, Shape::of(header.shape)};
}

}  // namespace

Result<Tensor> parse_npy(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.substr(0, kMagic.size()) != kMagic || text.size() < 10) return corrupt("not an .npy file");
  const int version = text[6];
  if (version < 1 || version > 3) return unsupported(".npy version {}", version);
  const size_t prefix = version == 1 ? 10 : 12;
  if (text.size() < prefix) return corrupt(".npy file ends in its header");
  const size_t length = little_endian(text.substr(8, prefix - 8));
  if (length > kMaxHeader || length > text.size() - prefix) return corrupt(".npy header of {} bytes", length);
  LIMBER_ASSIGN(const auto header, HeaderParser(text.substr(prefix, length)).parse());
  const std::string_view data = text.substr(prefix + length);
  LIMBER_ASSIGN(TensorType type, type_of(header, data.size()));
  LIMBER_ASSIGN(Tensor tensor, Tensor::allocate(std::move(type)));
  if (header.fortran && tensor.shape().rank() > 1) {
    from_fortran(data.data(), tensor);
  } else if (!data.empty()) {
    std::memcpy(tensor.raw(), data.data(), data.size());
  }
  if (header.descr[0] == '>') reverse_bytes(tensor);
  if (tensor.dtype() == DType::kBool) {
    auto* flags = static_cast<uint8_t*>(tensor.raw());
    for (int64_t i = 0; i < tensor.elements(); ++i) flags[i] = flags[i] != 0;
  }
  return tensor;
}

Result<Tensor> read_npy(const std::string& path) {
  LIMBER_ASSIGN(const auto file, os_files().map(path));
  auto tensor = parse_npy(file->bytes());
  if (!tensor.ok()) return tensor.status().in(path);
  return tensor;
}

Result<std::string> format_npy(const Tensor& tensor) {
  std::string descr;
  for (const auto& [name, dtype] : kTypes) {
    if (dtype == tensor.dtype()) descr = fmt::format("{}{}", dtype_size(dtype) == 1 ? '|' : '<', name);
  }
  if (descr.empty()) return unsupported(".npy has no name for {}", dtype_name(tensor.dtype()));
  std::string shape;
  for (int64_t d : tensor.shape().dims()) shape += fmt::format("{}, ", d);
  if (tensor.shape().rank() > 1) shape.resize(shape.size() - 2);
  if (tensor.shape().rank() == 1) shape.resize(shape.size() - 1);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  // Data starts at a multiple of 64, as NumPy writes it.
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string out(kMagic);
  out += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  out += header;
  out.append(static_cast<const char*>(tensor.raw()), tensor.bytes());
  return out;
}

Status write_npy(const std::string& path, const Tensor& tensor) {
  LIMBER_ASSIGN(const std::string bytes, format_npy(tensor));
  return os_files().write(path, bytes);
}

}  // namespace limber
