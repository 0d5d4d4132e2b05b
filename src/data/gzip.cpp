#include "data/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "base/file.h"
#include "tensor/tensor.h"

namespace limber {
namespace {

constexpr size_t kHeaderAndTrailer = 18;   // bytes, at least
constexpr size_t kMaxRatio = 1032;         // deflate cannot do better
constexpr size_t kStep = size_t{1} << 30;  // zlib counts in 32 bits

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

// The trailer's claim, modulo 2^32.
size_t claimed_size(std::span<const std::byte> bytes) {
  size_t size = 0;
  for (size_t i = 1; i <= 4; ++i) size = size << 8 | static_cast<size_t>(bytes[bytes.size() - i]);
  return size;
}

class Inflater {
 public:
  Inflater() { started_ = inflateInit2(&stream_, 15 + 16) == Z_OK; }
  ~Inflater() {
    if (started_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Whether `from` is one whole gzip member that inflates to exactly `to`.
  bool run(std::span<const std::byte> from, std::span<std::byte> to) {
    if (!started_) return false;
    std::byte beyond{};  // where output that should not be there would go
    size_t in = 0, out = 0;
    for (;;) {
      const size_t give = std::min(from.size() - in, kStep);
      const size_t room = std::min(to.size() - out, kStep);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from.data() + in));
      stream_.avail_in = static_cast<uInt>(give);
      stream_.next_out = reinterpret_cast<Bytef*>(room > 0 ? to.data() + out : &beyond);
      stream_.avail_out = static_cast<uInt>(std::max<size_t>(room, 1));
      const int code = inflate(&stream_, Z_NO_FLUSH);
      in += give - stream_.avail_in;
      const size_t made = std::max<size_t>(room, 1) - stream_.avail_out;
      if (made > room) return false;
      out += made;
      if (code == Z_STREAM_END) return in == from.size() && out == to.size();
      if (code != Z_OK) return false;
    }
  }

 private:
  z_stream stream_{};
  bool started_ = false;
};

Result<FileBytes> inflate_all(std::span<const std::byte> bytes, size_t limit) {
  if (bytes.size() < kHeaderAndTrailer)
    return corrupt("a gzip file of {} bytes ends too early", bytes.size());
  const size_t size = claimed_size(bytes);
  if (size > limit)
    return error(Code::kResourceExhausted, "{} bytes when inflated, at most {} are read", size, limit);
  if (size / kMaxRatio > bytes.size()) {
    return corrupt("{} bytes of gzip cannot hold the {} they claim; the file is damaged", bytes.size(), size);
  }
  LIMBER_ASSIGN(std::shared_ptr<Buffer> buffer, Buffer::allocate(size));
  if (!Inflater().run(bytes, {buffer->data(), size})) {
    return corrupt("the gzip data are damaged or cut short; test the file with gzip -t");
  }
  return FileBytes{{buffer->data(), size}, buffer};
}

}  // namespace

Result<FileBytes> read_plain_or_gzip(const std::string& path, size_t limit) {
  LIMBER_ASSIGN(const auto file, os_files().map(path));
  if (is_gzip(file->bytes())) {
    auto inflated = inflate_all(file->bytes(), limit);
    if (!inflated.ok()) return inflated.status().in(path);
    return inflated;
  }
  if (file->bytes().size() > limit) {
    return error(Code::kResourceExhausted, "{}: {} bytes, at most {} are read", path, file->bytes().size(),
                 limit);
  }
  return FileBytes{file->bytes(), file};
}

}  // namespace limber
