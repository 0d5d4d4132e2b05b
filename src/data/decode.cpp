// libjpeg and libpng report errors by longjmp. Each decode function keeps its C++ objects in a frame
// above the one that calls setjmp, so that no destructor is skipped.
#include <csetjmp>
#include <cstdio>
#include <cstring>
// clang-format off: jpeglib.h needs size_t and FILE to be known
#include <jpeglib.h>
#include <png.h>
// clang-format on

#include "base/file.h"
#include "data/image.h"

namespace limber {
namespace {

constexpr size_t kMaxFileBytes = size_t{256} << 20;
constexpr int kMaxJpegScans = 200;  // a progressive file with more is an attack on our time

Result<Tensor> make_image(uint64_t width, uint64_t height) {
  if (width == 0 || height == 0) return corrupt("image of {}x{} pixels", width, height);
  if (width > kMaxImageSide || height > kMaxImageSide || width * height > uint64_t{kMaxImagePixels}) {
    return error(Code::kResourceExhausted, "image of {}x{} pixels; at most {} a side and {} in all", width,
                 height, kMaxImageSide, kMaxImagePixels);
  }
  return Tensor::allocate({DType::kU8, Shape{static_cast<int64_t>(height), static_cast<int64_t>(width), 3}});
}

// --- JPEG -------------------------------------------------------------------------------------------

struct JpegFailure {
  jpeg_error_mgr base;  // first, so that libjpeg's pointer is ours too
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void jpeg_fail(j_common_ptr info) {
  auto* failure = reinterpret_cast<JpegFailure*>(info->err);
  info->err->format_message(info, failure->message);
  std::longjmp(failure->jump, 1);
}

void jpeg_ignore_message(j_common_ptr) {}

void jpeg_count_scans(j_common_ptr info) {
  auto* failure = reinterpret_cast<JpegFailure*>(info->err);
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxJpegScans) return;
  std::snprintf(failure->message, sizeof(failure->message), "more than %d scans", kMaxJpegScans);
  std::longjmp(failure->jump, 1);
}

struct JpegReader {
  jpeg_decompress_struct info{};
  JpegFailure failure{};
  jpeg_progress_mgr progress{};

  JpegReader() {
    info.err = jpeg_std_error(&failure.base);
    failure.base.error_exit = jpeg_fail;
    failure.base.output_message = jpeg_ignore_message;
    progress.progress_monitor = jpeg_count_scans;
  }
  ~JpegReader() { jpeg_destroy_decompress(&info); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
};

// No object with a destructor lives in this frame or the next.
bool jpeg_start(JpegReader& reader, std::span<const std::byte> bytes) {
  if (setjmp(reader.failure.jump) != 0) return false;
  jpeg_create_decompress(&reader.info);
  reader.info.progress = &reader.progress;
  jpeg_mem_src(&reader.info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&reader.info, TRUE);
  if (reader.info.jpeg_color_space == JCS_CMYK || reader.info.jpeg_color_space == JCS_YCCK) {
    std::snprintf(reader.failure.message, sizeof(reader.failure.message), "CMYK colours are not supported");
    return false;
  }
  reader.info.out_color_space = JCS_RGB;
  return true;
}

bool jpeg_read_rows(JpegReader& reader, uint8_t* pixels) {
  if (setjmp(reader.failure.jump) != 0) return false;
  jpeg_start_decompress(&reader.info);
  const size_t stride = size_t{3} * reader.info.output_width;
  while (reader.info.output_scanline < reader.info.output_height) {
    JSAMPROW row = pixels + stride * reader.info.output_scanline;
    jpeg_read_scanlines(&reader.info, &row, 1);
  }
  jpeg_finish_decompress(&reader.info);
  if (reader.failure.base.num_warnings == 0) return true;
  std::snprintf(reader.failure.message, sizeof(reader.failure.message),
                "the data are damaged or end too early");
  return false;
}

Result<Tensor> decode_jpeg(std::span<const std::byte> bytes) {
  JpegReader reader;
  if (!jpeg_start(reader, bytes)) return corrupt("JPEG: {}", reader.failure.message);
  LIMBER_ASSIGN(Tensor image, make_image(reader.info.image_width, reader.info.image_height));
  if (!jpeg_read_rows(reader, static_cast<uint8_t*>(image.raw()))) {
    return corrupt("JPEG: {}", reader.failure.message);
  }
  return image;
}

// --- PNG --------------------------------------------------------------------------------------------

struct PngReader {
  std::span<const std::byte> bytes;
  size_t position = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  char message[160] = "cannot start the decoder";

  explicit PngReader(std::span<const std::byte> data) : bytes(data) {}
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

Result<Tensor> decode_png(std::span<const std::byte> bytes) {
  PngReader reader(bytes);
  if (!png_start(reader)) return corrupt("PNG: {}", reader.message);
  const uint32_t width = png_get_image_width(reader.png, reader.info);
  const uint32_t height = png_get_image_height(reader.png, reader.info);
  LIMBER_ASSIGN(Tensor image, make_image(width, height));
  // Interlaced passes read back what earlier ones wrote.
  std::memset(image.raw(), 0, image.bytes());
  if (!png_read_rows(reader, static_cast<uint8_t*>(image.raw()), height, size_t{3} * width)) {
    return corrupt("PNG: {}", reader.message);
  }
  return image;
}

bool starts_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

}  // namespace

Result<Tensor> decode_image(std::span<const std::byte> bytes) {
  if (starts_with(bytes, "\xff\xd8\xff")) return decode_jpeg(bytes);
  if (starts_with(bytes, "\x89PNG\r\n\x1a\n")) return decode_png(bytes);
  return corrupt("neither a JPEG nor a PNG image");
}

Result<Tensor> load_image(const std::string& path) {
  LIMBER_ASSIGN(const std::string bytes, os_files().read(path, kMaxFileBytes));
  auto image = decode_image(std::as_bytes(std::span(bytes)));
  if (!image.ok()) return image.status().in(path);
  return image;
}

bool is_image_name(std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string extension(path.substr(dot + 1));
  for (char& c : extension) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return extension == "jpg" || extension == "jpeg" || extension == "png";
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
