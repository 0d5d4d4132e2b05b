// libpng reports errors by longjmp. decode_png keeps its C++ objects in a frame above those that call setjmp,
// so that no destructor is skipped.
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "data/decoders.h"
#include "data/image.h"

namespace limber {
namespace {

struct PngReader {
  FileSpan bytes;
  size_t position = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  char message[160] = "cannot start the decoder";

  explicit PngReader(FileSpan data) : bytes(data) {}
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
};

[[noreturn]] void png_fail(png_structp png, png_const_charp message) {
  auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
  std::snprintf(reader->message, sizeof(reader->message), "%s", message);
  png_longjmp(png, 1);
}

void png_ignore_warning(png_structp, png_const_charp) {}

void png_read_bytes(png_structp png, png_bytep out, size_t count) {
  auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
  if (count > reader->bytes.size() - reader->position) png_error(png, "the file ends too early");
  std::memcpy(out, reader->bytes.data() + reader->position, count);
  reader->position += count;
}

// No object with a destructor lives in this frame or the next.
bool png_start(PngReader& reader) {
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, png_fail, png_ignore_warning);
  if (reader.png == nullptr) return false;
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  reader.info = png_create_info_struct(reader.png);
  if (reader.info == nullptr) return false;
  png_set_user_limits(reader.png, kMaxImageSide, kMaxImageSide);
  png_set_chunk_malloc_max(reader.png, 8 << 20);
  png_set_read_fn(reader.png, &reader, png_read_bytes);
  png_read_info(reader.png, reader.info);
  png_set_expand(reader.png);
  png_set_strip_16(reader.png);
  png_set_strip_alpha(reader.png);
  png_set_gray_to_rgb(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  return true;
}

bool png_read_rows(PngReader& reader, uint8_t* pixels, uint32_t height, size_t stride) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  if (png_get_rowbytes(reader.png, reader.info) != stride) png_error(reader.png, "unexpected pixel format");
  const int passes = png_get_interlace_type(reader.png, reader.info) == PNG_INTERLACE_ADAM7 ? 7 : 1;
  for (int pass = 0; pass < passes; ++pass) {
    for (uint32_t y = 0; y < height; ++y) png_read_row(reader.png, pixels + stride * y, nullptr);
  }
  png_read_end(reader.png, nullptr);
  return true;
}

// libpng calls an image beyond its limits invalid; say what is the matter instead.
Status check_claimed_size(FileSpan bytes) {
  constexpr size_t kWidth = 16, kHeight = 20, kEnd = 24;  // in the first chunk, after the magic
  if (bytes.size() < kEnd || std::memcmp(bytes.data() + 12, "IHDR", 4) != 0) return {};
  return check_image_size(big32(bytes, kWidth), big32(bytes, kHeight));
}

Orientation orientation_of(PngReader& reader) {
  png_bytep exif = nullptr;
  png_uint_32 size = 0;
  if (png_get_eXIf_1(reader.png, reader.info, &size, &exif) == 0) return Orientation::kUpright;
  return read_orientation(std::as_bytes(std::span(exif, size)));
}

}  // namespace

Result<Decoded> decode_png(FileSpan bytes) {
  LIMBER_TRY(check_claimed_size(bytes));
  PngReader reader(bytes);
  if (!png_start(reader)) return corrupt("PNG: {}", reader.message);
  const uint32_t width = png_get_image_width(reader.png, reader.info);
  const uint32_t height = png_get_image_height(reader.png, reader.info);
  Decoded decoded;
  LIMBER_ASSIGN(decoded.image, make_image(width, height));
  decoded.orientation = orientation_of(reader);
  // Interlaced passes read back what earlier ones wrote.
  std::memset(decoded.image.raw(), 0, decoded.image.bytes());
  if (!png_read_rows(reader, static_cast<uint8_t*>(decoded.image.raw()), height, size_t{3} * width))
    return corrupt("PNG: {}", reader.message);
  return decoded;
}

Result<std::string> encode_png(const Tensor& image) {
  LIMBER_ASSERT(image.dtype() == DType::kU8 && image.shape().rank() == 3 && image.shape().dim(2) == 3);
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.height = static_cast<png_uint_32>(image.shape().dim(0));
  header.width = static_cast<png_uint_32>(image.shape().dim(1));
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&header, bytes.data(), &size, 0, image.raw(), 0, nullptr) == 0) {
    return error(Code::kInternal, "PNG: {}", header.message);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace limber
