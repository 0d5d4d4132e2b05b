// Which way up a picture is. Of EXIF one number is wanted: it is read here, without a library that would
// parse all the rest of what a stranger put there.
#include <algorithm>
#include <cstring>

#include "data/decoders.h"

namespace limber {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShort = 3;  // the type of a 16-bit number
constexpr size_t kEntry = 12;   // bytes: tag, type, count, value

class Exif {
 public:
  explicit Exif(FileSpan bytes) : bytes_(bytes), big_(byte_at(bytes, 0) == 'M') {}
  uint32_t u16(size_t at) const { return big_ ? big16(bytes_, at) : little16(bytes_, at); }
  uint32_t u32(size_t at) const { return big_ ? big32(bytes_, at) : little32(bytes_, at); }

 private:
  FileSpan bytes_;
  bool big_;
};

// Where pixel (y, x) of the upright picture is stored.
struct Source {
  bool swapped, rows_reversed, columns_reversed;
};

Source source_of(Orientation orientation) {
  switch (orientation) {
    case Orientation::kUpright:
      return {false, false, false};
    case Orientation::kMirrored:
      return {false, false, true};
    case Orientation::kUpsideDown:
      return {false, true, true};
    case Orientation::kMirroredUpsideDown:
      return {false, true, false};
    case Orientation::kTransposed:
      return {true, false, false};
    case Orientation::kTurnRight:
      return {true, true, false};
    case Orientation::kTransverse:
      return {true, true, true};
    case Orientation::kTurnLeft:
      return {true, false, true};
  }
  LIMBER_UNREACHABLE();
}

}  // namespace

Orientation read_orientation(FileSpan exif) {
  constexpr size_t kHeader = 8;
  constexpr char kPrefix[] = "Exif\0";  // and the zero that ends it
  if (exif.size() >= sizeof(kPrefix) && std::memcmp(exif.data(), kPrefix, sizeof(kPrefix)) == 0)
    exif = exif.subspan(sizeof(kPrefix));
  if (exif.size() < kHeader || exif[0] != exif[1]) return Orientation::kUpright;
  if (byte_at(exif, 0) != 'I' && byte_at(exif, 0) != 'M') return Orientation::kUpright;
  const Exif in(exif);
  const size_t first = in.u32(4);
  if (in.u16(2) != 42 || first < kHeader || first > exif.size() - 2) return Orientation::kUpright;
  const size_t entries = std::min<size_t>(in.u16(first), (exif.size() - first - 2) / kEntry);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = first + 2 + i * kEntry;
    if (in.u16(at) != kOrientationTag) continue;
    const uint32_t value = in.u16(at + 8);
    const bool sound = in.u16(at + 2) == kShort && in.u32(at + 4) == 1 && value >= 1 && value <= 8;
    return sound ? static_cast<Orientation>(value) : Orientation::kUpright;
  }
  return Orientation::kUpright;
}

Result<Tensor> turned_upright(Tensor image, Orientation orientation) {
  if (orientation == Orientation::kUpright) return image;
  const Source source = source_of(orientation);
  const int64_t rows = image.shape().dim(0), columns = image.shape().dim(1);
  LIMBER_ASSIGN(Tensor upright, make_image(static_cast<uint64_t>(source.swapped ? rows : columns),
                                           static_cast<uint64_t>(source.swapped ? columns : rows)));
  const uint8_t* from = image.data<uint8_t>().data();
  uint8_t* to = upright.data<uint8_t>().data();
  for (int64_t y = 0; y < upright.shape().dim(0); ++y) {
    for (int64_t x = 0; x < upright.shape().dim(1); ++x) {
      int64_t row = source.swapped ? x : y, column = source.swapped ? y : x;
      if (source.rows_reversed) row = rows - 1 - row;
      if (source.columns_reversed) column = columns - 1 - column;
      to = std::copy_n(from + 3 * (row * columns + column), 3, to);
    }
  }
  return upright;
}

}  // namespace limber
