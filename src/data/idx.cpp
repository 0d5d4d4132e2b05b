#include <filesystem>

#include "data/bytes.h"
#include "data/dataset.h"
#include "data/gzip.h"

namespace limber {
namespace {

constexpr size_t kMaxIdxBytes = size_t{3} << 30;  // gzip says sizes modulo 4 GiB
constexpr int kUnsignedByte = 0x08;               // the code of this element type

// Two zeros, the element type, the rank, the dimensions (big endian, 32 bits), the elements.
Result<Tensor> parse_idx(const FileBytes& file) {
  const auto bytes = file.bytes;
  if (bytes.size() < 4 || byte_at(bytes, 0) != 0 || byte_at(bytes, 1) != 0) {
    return corrupt("not an IDX file: it must start with two zero bytes, the element type and the rank");
  }
  const auto type = static_cast<int>(byte_at(bytes, 2)), rank = static_cast<int>(byte_at(bytes, 3));
  if (type != kUnsignedByte)
    return unsupported("IDX elements of type 0x{:02x}; only unsigned bytes (0x08) are read", type);
  if (rank < 1 || rank > 4)
    return unsupported("an IDX array of rank {}; expected 1 for labels, 3 or 4 for images", rank);
  const size_t header = 4 + 4 * static_cast<size_t>(rank);
  if (bytes.size() < header) return corrupt("the IDX header is cut short after {} bytes", bytes.size());
  std::vector<int64_t> dims;
  for (int i = 0; i < rank; ++i) dims.push_back(big32(bytes, 4 + 4 * static_cast<size_t>(i)));
  const size_t present = bytes.size() - header;
  const auto elements = checked_elements(dims, static_cast<int64_t>(present));
  if (!elements || static_cast<size_t>(*elements) != present) {
    return corrupt("an IDX array of {} with {} bytes of data; the file is cut short or damaged",
                   Shape::of(dims).to_string(), present);
  }
  return Tensor({DType::kU8, Shape::of(dims)}, Buffer::borrow(bytes.data() + header, present, file.owner));
}

Result<Tensor> read_idx(const std::string& path) {
  LIMBER_ASSIGN(const FileBytes file, read_plain_or_gzip(path, kMaxIdxBytes));
  auto tensor = parse_idx(file);
  if (!tensor.ok()) return tensor.status().in(path);
  return tensor;
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_idx(const std::string& images, const std::string& labels,
                                          const ClassNames& expected) {
  LIMBER_ASSIGN(const Tensor pixels, read_idx(images));
  LIMBER_ASSIGN(const Tensor numbers, read_idx(labels));
  if (numbers.shape().rank() != 1) {
    return invalid("{}: labels of shape [{}]; expected one number an image", labels,
                   numbers.shape().to_string());
  }
  return open_arrays(pixels, numbers, images, expected);
}

}  // namespace limber
