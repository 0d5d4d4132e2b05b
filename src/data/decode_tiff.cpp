// libtiff's own conversion to RGBA knows palettes, bilevel, grey, CMYK, YCbCr, tiles and every compression.
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "data/decoders.h"
#include "data/image.h"

namespace limber {
namespace {

// Bytes. A strip or tile of the largest image is no larger; what asks for more is an attack on our memory.
constexpr tmsize_t kMaxAllocation = tmsize_t{4} * kMaxImagePixels;

struct TiffReader {
  FileSpan bytes;
  size_t position = 0;
  char message[200] = "the header is damaged";
};

int keep_message(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  auto* reader = static_cast<TiffReader*>(user);
  std::vsnprintf(reader->message, sizeof(reader->message), format, arguments);
  return 1;
}

int ignore_message(TIFF*, void*, const char*, const char*, va_list) { return 1; }

tmsize_t read_bytes(thandle_t handle, void* to, tmsize_t count) {
  auto* reader = static_cast<TiffReader*>(handle);
  const size_t left = reader->bytes.size() - std::min(reader->position, reader->bytes.size());
  const size_t taken = std::min(left, static_cast<size_t>(std::max<tmsize_t>(count, 0)));
  if (taken > 0) std::memcpy(to, reader->bytes.data() + reader->position, taken);
  reader->position += taken;
  return static_cast<tmsize_t>(taken);
}

tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return -1; }

toff_t seek(thandle_t handle, toff_t offset, int whence) {
  auto* reader = static_cast<TiffReader*>(handle);
  const size_t base = whence == SEEK_CUR ? reader->position : whence == SEEK_END ? reader->bytes.size() : 0;
  reader->position = base + offset;  // beyond the end nothing is read
  return reader->position;
}

int close_nothing(thandle_t) { return 0; }
toff_t size_of(thandle_t handle) { return static_cast<TiffReader*>(handle)->bytes.size(); }

struct Close {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using Tiff = std::unique_ptr<TIFF, Close>;

Tiff open(TiffReader& reader) {
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  if (options == nullptr) return nullptr;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, kMaxAllocation);
  TIFFOpenOptionsSetErrorHandlerExtR(options, keep_message, &reader);
  TIFFOpenOptionsSetWarningHandlerExtR(options, ignore_message, nullptr);
  // "m": without mapping, for which there are no functions.
  Tiff tiff(TIFFClientOpenExt("image", "rm", &reader, read_bytes, write_nothing, seek, close_nothing, size_of,
                              nullptr, nullptr, options));
  TIFFOpenOptionsFree(options);
  return tiff;
}

// The conversion would darken colours by an alpha channel, which is dropped here as for other formats.
void forget_alpha(TIFF* tiff) {
  uint16_t count = 0;
  uint16_t* kinds = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &count, &kinds) == 0 || count == 0) return;
  std::vector<uint16_t> plain(kinds, kinds + count);
  plain[0] = EXTRASAMPLE_ASSOCALPHA;
  TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, count, plain.data());
}

// The tag's value; pixels are then given as they are stored.
Orientation take_orientation(TIFF* tiff) {
  uint16_t value = 1;
  if (TIFFGetField(tiff, TIFFTAG_ORIENTATION, &value) == 0 || value < 1 || value > 8) value = 1;
  TIFFSetField(tiff, TIFFTAG_ORIENTATION, uint16_t{ORIENTATION_TOPLEFT});
  return static_cast<Orientation>(value);
}

}  // namespace

Result<Decoded> decode_tiff(FileSpan bytes) {
  TiffReader reader{bytes};
  const Tiff tiff = open(reader);
  if (tiff == nullptr) return corrupt("TIFF: {}", reader.message);
  uint32_t width = 0, height = 0;
  if (TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) == 0 ||
      TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height) == 0) {
    return corrupt("TIFF: it does not say how large the image is");
  }
  Decoded decoded;
  LIMBER_ASSIGN(decoded.image, make_image(width, height));
  char reason[1024] = "";
  if (TIFFRGBAImageOK(tiff.get(), reason) == 0) return unsupported("TIFF: {}; convert it to PNG", reason);
  decoded.orientation = take_orientation(tiff.get());
  forget_alpha(tiff.get());
  std::vector<uint32_t> pixels(size_t{width} * height);
  constexpr int kStopOnError = 1;
  if (TIFFReadRGBAImageOriented(tiff.get(), width, height, pixels.data(), ORIENTATION_TOPLEFT,
                                kStopOnError) == 0) {
    return corrupt("TIFF: {}", reader.message);
  }
  auto* out = static_cast<uint8_t*>(decoded.image.raw());
  for (const uint32_t pixel : pixels) {
    *out++ = static_cast<uint8_t>(TIFFGetR(pixel));
    *out++ = static_cast<uint8_t>(TIFFGetG(pixel));
    *out++ = static_cast<uint8_t>(TIFFGetB(pixel));
  }
  return decoded;
}

}  // namespace limber
