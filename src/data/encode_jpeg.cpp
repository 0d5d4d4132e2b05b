// libjpeg reports errors by longjmp: no object with a destructor lives in the frame that calls it.
#include "data/encode_jpeg.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
// clang-format off: jpeglib.h needs size_t and FILE to be known
#include <jpeglib.h>
// clang-format on

namespace limber {
namespace {

struct JpegWriter {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";
  unsigned char* bytes = nullptr;
  unsigned long size = 0;

  JpegWriter() {
    info.err = jpeg_std_error(&errors);
    info.client_data = this;
    errors.error_exit = [](j_common_ptr failed) {
      auto* writer = static_cast<JpegWriter*>(failed->client_data);
      failed->err->format_message(failed, writer->message);
      std::longjmp(writer->jump, 1);
    };
    errors.output_message = [](j_common_ptr) {};
  }
  ~JpegWriter() {
    jpeg_destroy_compress(&info);
    std::free(bytes);
  }
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;
};

bool write_jpeg(JpegWriter& writer, const uint8_t* pixels, unsigned height, unsigned width, int quality) {
  if (setjmp(writer.jump) != 0) return false;
  jpeg_compress_struct& info = writer.info;
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &writer.bytes, &writer.size);
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
  return std::string(reinterpret_cast<const char*>(writer.bytes), writer.size);
}

}  // namespace limber
