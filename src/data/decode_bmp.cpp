// Windows bitmaps without compression, which is what programs write. Debian has no small library for them.
#include <algorithm>
#include <array>
#include <bit>

#include "data/decoders.h"

namespace limber {
namespace {

constexpr size_t kFileHeader = 14;
constexpr uint32_t kCoreHeader = 12, kInfoHeader = 40;  // bytes; longer ones begin like the latter
enum Compression : uint32_t { kNone = 0, kBitFields = 3, kAlphaBitFields = 6 };

struct Header {
  size_t info_bytes = 0;  // of the header after the file's
  int64_t width = 0, height = 0;
  bool top_down = false;
  uint32_t bits = 0;  // a pixel
  uint32_t compression = kNone;
  uint32_t colours = 0;  // of the palette; 0: as many as `bits` can name
  size_t pixels = 0;     // where they begin
  size_t stride() const { return (static_cast<size_t>(width) * bits + 31) / 32 * 4; }
};

Result<Header> read_header(FileSpan in) {
  if (in.size() < kFileHeader + 4) return corrupt("BMP: the file ends in its header");
  Header h;
  h.pixels = little32(in, 10);
  h.info_bytes = little32(in, kFileHeader);
  if (h.info_bytes != kCoreHeader && h.info_bytes < kInfoHeader)
    return unsupported("BMP: a header of {} bytes; expected 12, or 40 and more", h.info_bytes);
  if (h.info_bytes > in.size() - kFileHeader) return corrupt("BMP: the file ends in its header");
  const size_t at = kFileHeader;
  if (h.info_bytes == kCoreHeader) {
    h.width = little16(in, at + 4);
    h.height = little16(in, at + 6);
    h.bits = little16(in, at + 10);
    return h;
  }
  h.width = static_cast<int32_t>(little32(in, at + 4));
  h.height = static_cast<int32_t>(little32(in, at + 8));
  h.bits = little16(in, at + 14);
  h.compression = little32(in, at + 16);
  h.colours = little32(in, at + 32);
  h.top_down = h.height < 0;
  h.height = std::abs(h.height);
  return h;
}

Status check_kind(const Header& h) {
  const bool fields = h.compression == kBitFields || h.compression == kAlphaBitFields;
  const bool known =
      h.bits == 1 || h.bits == 4 || h.bits == 8 || h.bits == 16 || h.bits == 24 || h.bits == 32;
  if (!known) return corrupt("BMP: {} bits a pixel; expected 1, 4, 8, 16, 24 or 32", h.bits);
  if (h.compression == kNone || (fields && (h.bits == 16 || h.bits == 32))) return {};
  return unsupported("BMP: compression {} with {} bits a pixel; convert it to PNG", h.compression, h.bits);
}

// Which bits of a pixel are one colour, widened to a byte.
class Field {
 public:
  Field() = default;
  static Result<Field> of(uint32_t mask) {
    Field field;
    field.shift_ = mask == 0 ? 0 : std::countr_zero(mask);
    field.most_ = mask >> field.shift_;
    if ((field.most_ & (field.most_ + 1)) != 0)
      return corrupt("BMP: colour mask {:08x} is not one run of bits", mask);
    return field;
  }
  uint8_t operator()(uint32_t pixel) const {
    if (most_ == 0) return 0;
    const uint64_t value = pixel >> shift_ & most_;
    return static_cast<uint8_t>((value * 255 + most_ / 2) / most_);
  }

 private:
  int shift_ = 0;
  uint32_t most_ = 0;
};
using Fields = std::array<Field, 3>;  // red, green, blue

Result<Fields> read_fields(FileSpan in, const Header& h) {
  std::array<uint32_t, 3> masks{0x00ff0000, 0x0000ff00, 0x000000ff};
  if (h.bits == 16) masks = {0x7c00, 0x03e0, 0x001f};
  const size_t at = kFileHeader + kInfoHeader;  // in longer headers too
  if (h.compression != kNone) {
    if (in.size() < at + 12) return corrupt("BMP: the file ends before its colour masks");
    for (size_t c = 0; c < 3; ++c) masks[c] = little32(in, at + 4 * c);
  }
  Fields fields;
  for (size_t c = 0; c < 3; ++c) {
    LIMBER_ASSIGN(fields[c], Field::of(masks[c]));
  }
  return fields;
}

using Palette = std::array<std::array<uint8_t, 3>, 256>;  // what a file does not name is black

Result<Palette> read_palette(FileSpan in, const Header& h) {
  const uint32_t most = uint32_t{1} << h.bits;
  const uint32_t colours = h.colours == 0 ? most : std::min(h.colours, most);
  const size_t each = h.info_bytes == kCoreHeader ? 3 : 4, at = kFileHeader + h.info_bytes;
  if (colours * each > in.size() - at) return corrupt("BMP: the file ends in its palette");
  Palette palette{};
  for (size_t i = 0; i < colours; ++i) {
    for (size_t c = 0; c < 3; ++c) palette[i][c] = static_cast<uint8_t>(byte_at(in, at + each * i + 2 - c));
  }
  return palette;
}

void paint_row(FileSpan row, const Header& h, const Palette& palette, uint8_t* out) {
  const uint32_t each = 8 / h.bits, mask = (1U << h.bits) - 1;
  for (size_t x = 0; x < static_cast<size_t>(h.width); ++x) {
    const uint32_t shift = h.bits * (each - 1 - static_cast<uint32_t>(x % each));
    out = std::copy_n(palette[byte_at(row, x / each) >> shift & mask].begin(), 3, out);
  }
}

void unpack_row(FileSpan row, const Header& h, const Fields& fields, uint8_t* out) {
  for (size_t x = 0; x < static_cast<size_t>(h.width); ++x) {
    const uint32_t pixel = h.bits == 16   ? little16(row, 2 * x)
                           : h.bits == 24 ? little16(row, 3 * x) | byte_at(row, 3 * x + 2) << 16
                                          : little32(row, 4 * x);
    for (const Field& field : fields) *out++ = field(pixel);
  }
}

}  // namespace

Result<Decoded> decode_bmp(FileSpan in) {
  LIMBER_ASSIGN(const Header h, read_header(in));
  LIMBER_TRY(check_kind(h));
  if (h.width < 1) return corrupt("BMP: {} pixels wide", h.width);
  LIMBER_ASSIGN(Tensor image, make_image(static_cast<uint64_t>(h.width), static_cast<uint64_t>(h.height)));
  const size_t rows = static_cast<size_t>(h.height);
  if (h.pixels > in.size() || rows * h.stride() > in.size() - h.pixels)
    return corrupt("BMP: {}x{} pixels of {} bits do not fit into {} bytes; the file is cut short", h.width,
                   h.height, h.bits, in.size());
  Palette palette{};
  Fields fields;
  if (h.bits <= 8) {
    LIMBER_ASSIGN(palette, read_palette(in, h));
  } else {
    LIMBER_ASSIGN(fields, read_fields(in, h));
  }
  auto* pixels = static_cast<uint8_t*>(image.raw());
  for (size_t y = 0; y < rows; ++y) {
    const FileSpan row = in.subspan(h.pixels + y * h.stride(), h.stride());
    uint8_t* out = pixels + (h.top_down ? y : rows - 1 - y) * static_cast<size_t>(3 * h.width);
    h.bits <= 8 ? paint_row(row, h, palette, out) : unpack_row(row, h, fields, out);
  }
  return Decoded{std::move(image)};
}

}  // namespace limber
