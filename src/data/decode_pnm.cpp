// Netpbm's PBM, PGM and PPM: a few numbers in text, then pixels as text or bytes.
#include <algorithm>

#include "data/decoders.h"

namespace limber {
namespace {

constexpr uint32_t kHighest = 65535;  // value of a sample

struct Kind {
  size_t channels;
  bool bits;  // black and white: 1 is black
  bool text;
};

Kind kind_of(uint32_t digit) {
  const uint32_t plain = digit > '3' ? digit - 3 : digit;
  return {size_t{plain == '3' ? 3U : 1U}, plain == '1', digit <= '3'};
}

bool is_space(uint32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

class Reader {
 public:
  explicit Reader(FileSpan bytes) : bytes_(bytes), at_(2) {}  // after "P6"

  size_t left() const { return bytes_.size() - at_; }
  FileSpan rest() const { return bytes_.subspan(at_); }
  // The one space that ends a header.
  bool take_space() { return left() > 0 && is_space(byte_at(bytes_, at_++)); }

  Result<uint32_t> number(uint32_t most) {
    skip();
    uint32_t value = 0;
    const size_t start = at_;
    for (; left() > 0 && is_digit(); ++at_) {
      value = value * 10 + (byte_at(bytes_, at_) - '0');
      if (value > most) return corrupt("a number above {} at byte {}", most, start);
    }
    if (at_ == start) return corrupt("no number at byte {}", start);
    return value;
  }
  // One digit: bits need no space between them.
  Result<uint32_t> bit() {
    skip();
    if (left() == 0 || (byte_at(bytes_, at_) != '0' && byte_at(bytes_, at_) != '1'))
      return corrupt("neither 0 nor 1 at byte {}", at_);
    return byte_at(bytes_, at_++) - '0';
  }

 private:
  bool is_digit() const { return byte_at(bytes_, at_) >= '0' && byte_at(bytes_, at_) <= '9'; }
  // Spaces, and comments from '#' to the end of the line.
  void skip() {
    bool comment = false;
    for (; left() > 0; ++at_) {
      const uint32_t c = byte_at(bytes_, at_);
      comment = comment ? c != '\n' && c != '\r' : c == '#';
      if (!comment && !is_space(c)) return;
    }
  }

  FileSpan bytes_;
  size_t at_;
};

struct Header {
  Kind kind;
  size_t width, height;
  uint32_t most;  // the value that is white
  size_t samples() const { return width * height * kind.channels; }
  size_t wide() const { return most > 255 ? 2 : 1; }
  uint8_t level(uint32_t value) const {
    return static_cast<uint8_t>((std::min(value, most) * 255 + most / 2) / most);
  }
};

// Samples go to `out`, one after the other.
Status read_text(Reader& reader, const Header& h, uint8_t* out) {
  for (size_t i = 0; i < h.samples(); ++i) {
    if (h.kind.bits) {
      LIMBER_ASSIGN(const uint32_t bit, reader.bit());
      *out++ = bit != 0 ? 0 : 255;
    } else {
      LIMBER_ASSIGN(const uint32_t value, reader.number(h.most));
      *out++ = h.level(value);
    }
  }
  return {};
}

Status read_binary(Reader& reader, const Header& h, uint8_t* out) {
  if (!reader.take_space()) return corrupt("no space after the header");
  const size_t row = h.kind.bits ? (h.width + 7) / 8 : h.width * h.kind.channels * h.wide();
  if (row * h.height > reader.left())
    return corrupt("{} bytes of pixels where {} are needed; the file is cut short", reader.left(),
                   row * h.height);
  const FileSpan in = reader.rest();
  for (size_t y = 0; y < h.height; ++y) {
    for (size_t x = 0; x < h.width * h.kind.channels; ++x) {
      if (h.kind.bits) {
        *out++ = (byte_at(in, y * row + x / 8) >> (7 - x % 8) & 1) != 0 ? 0 : 255;
      } else {
        const size_t at = y * row + x * h.wide();
        *out++ = h.level(h.wide() == 2 ? big16(in, at) : byte_at(in, at));
      }
    }
  }
  return {};
}

Result<Tensor> read_image(FileSpan bytes) {
  Reader reader(bytes);
  Header h{kind_of(byte_at(bytes, 1)), 0, 0, 1};
  constexpr uint32_t kMaxSide = 1U << 24;  // the limit of images is checked, and said, elsewhere
  LIMBER_ASSIGN(h.width, reader.number(kMaxSide));
  LIMBER_ASSIGN(h.height, reader.number(kMaxSide));
  if (!h.kind.bits) {
    LIMBER_ASSIGN(h.most, reader.number(kHighest));
    if (h.most == 0) return corrupt("the highest value is 0");
  }
  LIMBER_ASSIGN(Tensor image, make_image(h.width, h.height));
  auto* pixels = static_cast<uint8_t*>(image.raw());
  LIMBER_TRY(h.kind.text ? read_text(reader, h, pixels) : read_binary(reader, h, pixels));
  if (h.kind.channels == 1) {
    // From the end: a sample's three copies never reach one that is still to be read.
    for (size_t i = h.samples(); i-- > 0;) std::fill_n(pixels + 3 * i, 3, uint8_t{pixels[i]});
  }
  return image;
}

}  // namespace

Result<Decoded> decode_pnm(FileSpan bytes) {
  auto image = read_image(bytes);
  if (!image.ok()) return image.status().in("PNM");
  return Decoded{*std::move(image)};
}

}  // namespace limber
