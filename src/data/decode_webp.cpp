#include <webp/decode.h>

#include <algorithm>
#include <cstring>

#include "data/decoders.h"

namespace limber {
namespace {

constexpr size_t kRiffHeader = 12;  // "RIFF", size, "WEBP"
constexpr size_t kChunkHeader = 8;  // name, size

// The content of the EXIF chunk; empty without one.
FileSpan find_exif(FileSpan bytes) {
  for (size_t at = kRiffHeader; at + kChunkHeader <= bytes.size();) {
    const size_t size = little32(bytes, at + 4);
    const size_t content = at + kChunkHeader;
    if (size > bytes.size() - content) return {};
    if (std::memcmp(bytes.data() + at, "EXIF", 4) == 0) return bytes.subspan(content, size);
    at = content + size + size % 2;  // chunks begin at even positions
  }
  return {};
}

}  // namespace

Result<Decoded> decode_webp(FileSpan bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK)
    return corrupt("WebP: the header is damaged or cut short");
  if (features.has_animation != 0) return unsupported("WebP: an animation; save one frame of it as an image");
  Decoded decoded;
  LIMBER_ASSIGN(decoded.image,
                make_image(static_cast<uint64_t>(features.width), static_cast<uint64_t>(features.height)));
  auto* pixels = static_cast<uint8_t*>(decoded.image.raw());
  if (WebPDecodeRGBInto(data, bytes.size(), pixels, decoded.image.bytes(), 3 * features.width) == nullptr)
    return corrupt("WebP: the data are damaged or end too early");
  decoded.orientation = read_orientation(find_exif(bytes));
  return decoded;
}

}  // namespace limber
