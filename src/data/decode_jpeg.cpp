// libjpeg reports errors by longjmp. decode_jpeg keeps its C++ objects in a frame above those that call
// setjmp, so that no destructor is skipped.
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>
// clang-format off: jpeglib.h needs size_t and FILE to be known
#include <jpeglib.h>
// clang-format on

#include "data/decoders.h"

namespace limber {
namespace {

constexpr int kMaxScans = 200;  // a progressive file with more is an attack on our time
constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr unsigned kMaxMarkerBytes = 0xffff;  // a marker cannot be longer

struct JpegFailure {
  jpeg_error_mgr base;  // first, so that libjpeg's pointer is ours too
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void fail(j_common_ptr info) {
  auto* failure = reinterpret_cast<JpegFailure*>(info->err);
  info->err->format_message(info, failure->message);
  std::longjmp(failure->jump, 1);
}

void ignore_message(j_common_ptr) {}

void count_scans(j_common_ptr info) {
  auto* failure = reinterpret_cast<JpegFailure*>(info->err);
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  std::snprintf(failure->message, sizeof(failure->message), "more than %d scans", kMaxScans);
  std::longjmp(failure->jump, 1);
}

struct JpegReader {
  jpeg_decompress_struct info{};
  JpegFailure failure{};
  jpeg_progress_mgr progress{};

  JpegReader() {
    info.err = jpeg_std_error(&failure.base);
    failure.base.error_exit = fail;
    failure.base.output_message = ignore_message;
    progress.progress_monitor = count_scans;
  }
  ~JpegReader() { jpeg_destroy_decompress(&info); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  bool is_cmyk() const { return info.out_color_space == JCS_CMYK; }
};

// No object with a destructor lives in this frame or the next.
bool start(JpegReader& reader, FileSpan bytes) {
  if (setjmp(reader.failure.jump) != 0) return false;
  jpeg_create_decompress(&reader.info);
  reader.info.progress = &reader.progress;
  jpeg_mem_src(&reader.info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_save_markers(&reader.info, kExifMarker, kMaxMarkerBytes);
  jpeg_read_header(&reader.info, TRUE);
  const J_COLOR_SPACE stored = reader.info.jpeg_color_space;
  reader.info.out_color_space = stored == JCS_CMYK || stored == JCS_YCCK ? JCS_CMYK : JCS_RGB;
  return true;
}

// Ink as Adobe's programs store it, inverted, which all others took over: 255 is no ink.
void from_cmyk(const uint8_t* cmyk, size_t pixels, uint8_t* rgb) {
  for (size_t i = 0; i < pixels; ++i, cmyk += 4) {
    for (size_t c = 0; c < 3; ++c) *rgb++ = static_cast<uint8_t>((cmyk[c] * cmyk[3] + 127) / 255);
  }
}

// `row` holds a row of CMYK, where that is stored.
bool read_rows(JpegReader& reader, uint8_t* pixels, uint8_t* row) {
  if (setjmp(reader.failure.jump) != 0) return false;
  jpeg_start_decompress(&reader.info);
  const size_t width = reader.info.output_width;
  while (reader.info.output_scanline < reader.info.output_height) {
    uint8_t* out = pixels + 3 * width * reader.info.output_scanline;
    JSAMPROW target = reader.is_cmyk() ? row : out;
    jpeg_read_scanlines(&reader.info, &target, 1);
    if (reader.is_cmyk()) from_cmyk(row, width, out);
  }
  jpeg_finish_decompress(&reader.info);
  if (reader.failure.base.num_warnings == 0) return true;
  std::snprintf(reader.failure.message, sizeof(reader.failure.message),
                "the data are damaged or end too early");
  return false;
}

// EXIF is in one of these markers; the others read as upright.
Orientation orientation_of(const JpegReader& reader) {
  Orientation found = Orientation::kUpright;
  for (const auto* m = reader.info.marker_list; m != nullptr && found == Orientation::kUpright; m = m->next)
    found = read_orientation(std::as_bytes(std::span(m->data, m->data_length)));
  return found;
}

}  // namespace

Result<Decoded> decode_jpeg(FileSpan bytes) {
  JpegReader reader;
  if (!start(reader, bytes)) return corrupt("JPEG: {}", reader.failure.message);
  Decoded decoded;
  LIMBER_ASSIGN(decoded.image, make_image(reader.info.image_width, reader.info.image_height));
  decoded.orientation = orientation_of(reader);
  std::vector<uint8_t> row(reader.is_cmyk() ? size_t{4} * reader.info.image_width : 0);
  if (!read_rows(reader, static_cast<uint8_t*>(decoded.image.raw()), row.data()))
    return corrupt("JPEG: {}", reader.failure.message);
  return decoded;
}

}  // namespace limber
