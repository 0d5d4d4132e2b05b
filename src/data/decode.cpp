#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "data/decoders.h"
#include "data/image.h"
#include "data/text.h"

namespace limber {
namespace {

// Of a file; larger than any image within the limits is in a sensible format, and read as a whole.
constexpr size_t kMaxFileBytes = size_t{256} << 20;

struct Format {
  std::string_view magic;  // the file's first bytes; '?' is any
  Result<Decoded> (*decode)(FileSpan);
};
constexpr Format kFormats[] = {
    {"\xff\xd8\xff", decode_jpeg},
    {"\x89PNG\r\n\x1a\n", decode_png},
    {"RIFF????WEBP", decode_webp},
    {{"II\x2a\0", 4}, decode_tiff},
    {{"MM\0\x2a", 4}, decode_tiff},
    {{"II\x2b\0", 4}, decode_tiff},  // with 64-bit offsets
    {{"MM\0\x2b", 4}, decode_tiff},
    {"BM", decode_bmp},
    {"P1", decode_pnm},
    {"P2", decode_pnm},
    {"P3", decode_pnm},
    {"P4", decode_pnm},
    {"P5", decode_pnm},
    {"P6", decode_pnm},
};

constexpr std::string_view kSuffixes[] = {"jpg",  "jpeg", "png", "webp", "tif",
                                          "tiff", "bmp",  "ppm", "pgm",  "pbm"};

bool begins_with(FileSpan bytes, std::string_view magic) {
  if (bytes.size() < magic.size()) return false;
  for (size_t i = 0; i < magic.size(); ++i) {
    if (magic[i] != '?' && static_cast<char>(bytes[i]) != magic[i]) return false;
  }
  return true;
}

}  // namespace

Status check_image_size(uint64_t width, uint64_t height) {
  if (width == 0 || height == 0) return corrupt("image of {}x{} pixels", width, height);
  if (width <= kMaxImageSide && height <= kMaxImageSide && width * height <= uint64_t{kMaxImagePixels})
    return {};
  return error(Code::kResourceExhausted,
               "image of {}x{} pixels; at most {} a side and {} million in all are read, scale it down first",
               width, height, kMaxImageSide, kMaxImagePixels / 1000000);
}

Result<Tensor> make_image(uint64_t width, uint64_t height) {
  LIMBER_TRY(check_image_size(width, height));
  return Tensor::allocate({DType::kU8, Shape{static_cast<int64_t>(height), static_cast<int64_t>(width), 3}});
}

Result<Tensor> decode_image(FileSpan bytes) {
  for (const Format& format : kFormats) {
    if (!begins_with(bytes, format.magic)) continue;
    LIMBER_ASSIGN(Decoded decoded, format.decode(bytes));
    return turned_upright(std::move(decoded.image), decoded.orientation);
  }
  if (bytes.empty()) return corrupt("the image file is empty");
  return corrupt("not an image of a kind that is read: {}", image_kinds());
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
  const std::string suffix = lower_case(path.substr(dot + 1));
  return std::find(std::begin(kSuffixes), std::end(kSuffixes), suffix) != std::end(kSuffixes);
}

std::string_view image_kinds() { return "JPEG, PNG, WebP, TIFF, BMP, PPM, PGM or PBM"; }

}  // namespace limber
