// libjpeg reports errors by longjmp: no object with a destructor lives in the frame that calls it.
#include "data/encode_jpeg.h"

#include <csetjmp>
#include <cstdio>
#include <new>
// clang-format off: jpeglib.h needs size_t and FILE to be known
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

namespace limber {
namespace {

constexpr size_t kChunk = size_t{1} << 14;

// Takes the bytes by itself: jpeg_mem_dest() leaves a pointer behind that is freed already when memory runs
// out in the middle.
struct JpegWriter {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_destination_mgr to{};
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";
  JOCTET chunk[kChunk];
  std::string bytes;

  JpegWriter() {
    info.err = jpeg_std_error(&errors);
    info.client_data = this;
    errors.error_exit = [](j_common_ptr failed) {
      auto* writer = static_cast<JpegWriter*>(failed->client_data);
      failed->err->format_message(failed, writer->message);
      std::longjmp(writer->jump, 1);
    };
    errors.output_message = [](j_common_ptr) {};
    to.init_destination = [](j_compress_ptr compress) { of(compress).empty_chunk(); };
    to.empty_output_buffer = [](j_compress_ptr compress) -> boolean {
      take(compress, kChunk);
      return TRUE;
    };
    to.term_destination = [](j_compress_ptr compress) {
      take(compress, kChunk - of(compress).to.free_in_buffer);
    };
  }
  ~JpegWriter() { jpeg_destroy_compress(&info); }
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;

 private:
  static JpegWriter& of(j_compress_ptr compress) { return *static_cast<JpegWriter*>(compress->client_data); }
  static void take(j_compress_ptr compress, size_t count) {
    if (!of(compress).append(count)) compress->err->error_exit(reinterpret_cast<j_common_ptr>(compress));
  }
  void empty_chunk() {
    to.next_output_byte = chunk;
    to.free_in_buffer = kChunk;
  }
  // False when memory runs out: no exception goes through libjpeg.
  bool append(size_t count) {
    try {
      bytes.append(reinterpret_cast<const char*>(chunk), count);
    } catch (const std::bad_alloc&) {
      errors.msg_code = JERR_OUT_OF_MEMORY;
      return false;
    }
    empty_chunk();
    return true;
  }
};

bool write_jpeg(JpegWriter& writer, const uint8_t* pixels, unsigned height, unsigned width, int quality) {
  if (setjmp(writer.jump) != 0) return false;
  jpeg_compress_struct& info = writer.info;
  jpeg_create_compress(&info);
  info.dest = &writer.to;
  info.image_width = width;
  info.image_height = height;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < height) {
    auto* row = const_cast<JSAMPROW>(pixels + size_t{3} * width * info.next_scanline);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

}  // namespace

Result<std::string> encode_jpeg(const Tensor& image, int quality) {
  LIMBER_ASSERT(image.shape().rank() == 3 && image.shape().dim(2) == 3);
  JpegWriter writer;
  if (!write_jpeg(writer, image.data<uint8_t>().data(), static_cast<unsigned>(image.shape().dim(0)),
                  static_cast<unsigned>(image.shape().dim(1)), quality))
    return error(Code::kInternal, "an image of {} as JPEG: {}", image.shape().to_string(), writer.message);
  return std::move(writer.bytes);
}

}  // namespace limber
