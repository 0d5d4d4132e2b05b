// Private to this folder: one function per image format, called once its first bytes were seen. Bytes are
// untrusted. Each gives u8[H,W,3] as stored, and says which way up the picture is.
#pragma once

#include <cstdint>

#include "data/bytes.h"
#include "tensor/tensor.h"

namespace limber {

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

Result<Decoded> decode_jpeg(FileSpan bytes);
Result<Decoded> decode_png(FileSpan bytes);
Result<Decoded> decode_webp(FileSpan bytes);
Result<Decoded> decode_tiff(FileSpan bytes);
Result<Decoded> decode_bmp(FileSpan bytes);
Result<Decoded> decode_pnm(FileSpan bytes);

// kResourceExhausted beyond the limits of data/image.h.
Status check_image_size(uint64_t width, uint64_t height);
// Pixels that are yet to be written.
Result<Tensor> make_image(uint64_t width, uint64_t height);

// `exif` begins with the byte order ("II" or "MM"), or with "Exif" and two zeros before that. Damaged or
// without an orientation: upright, as cameras and editors write much that breaks the format.
Orientation read_orientation(FileSpan exif);
// Upright. The image itself when it is already.
Result<Tensor> turned_upright(Tensor image, Orientation orientation);

}  // namespace limber
