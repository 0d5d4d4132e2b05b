// Private to this folder: one function per image format, called once its first bytes were seen. Bytes are
// untrusted. Each gives u8[H,W,3] as stored, and says which way up the picture is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/tensor.h"

namespace limber {

using ImageBytes = std::span<const std::byte>;

// Where the first stored row and column are in the picture, numbered as in EXIF and TIFF: 1 is as stored.
enum class Orientation : uint8_t {
  kUpright = 1,
  kMirrored = 2,
  kUpsideDown = 3,
  kMirroredUpsideDown = 4,
  kTransposed = 5,
  kTurnRight = 6,  // a quarter, to stand upright
  kTransverse = 7,
  kTurnLeft = 8,
};

struct Decoded {
  Tensor image;
  Orientation orientation = Orientation::kUpright;
};

Result<Decoded> decode_jpeg(ImageBytes bytes);
Result<Decoded> decode_png(ImageBytes bytes);
Result<Decoded> decode_webp(ImageBytes bytes);
Result<Decoded> decode_tiff(ImageBytes bytes);
Result<Decoded> decode_bmp(ImageBytes bytes);
Result<Decoded> decode_pnm(ImageBytes bytes);

// kResourceExhausted beyond the limits of data/image.h.
Status check_image_size(uint64_t width, uint64_t height);
// Pixels that are yet to be written.
Result<Tensor> make_image(uint64_t width, uint64_t height);

// `exif` begins with the byte order ("II" or "MM"). Damaged or without an orientation: upright, as cameras
// and editors write much that breaks the format.
Orientation read_orientation(ImageBytes exif);
// Upright. The image itself when it is already.
Result<Tensor> turned_upright(Tensor image, Orientation orientation);

// Numbers in files. REQUIRES: the bytes are there
inline uint32_t byte_at(ImageBytes bytes, size_t at) { return static_cast<uint32_t>(bytes[at]); }
inline uint32_t little16(ImageBytes b, size_t at) { return byte_at(b, at) | byte_at(b, at + 1) << 8; }
inline uint32_t little32(ImageBytes b, size_t at) { return little16(b, at) | little16(b, at + 2) << 16; }
inline uint32_t big16(ImageBytes b, size_t at) { return byte_at(b, at) << 8 | byte_at(b, at + 1); }
inline uint32_t big32(ImageBytes b, size_t at) { return big16(b, at) << 16 | big16(b, at + 2); }

}  // namespace limber
