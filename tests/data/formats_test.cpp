// Image formats, each written by the library it comes from where there is one.
#include <gtest/gtest.h>
#include <tiffio.h>
#include <webp/encode.h>

#include <array>
#include <cstdio>
// clang-format off: jpeglib.h needs FILE to be known
#include <jpeglib.h>
// clang-format on

#include "base/random.h"
#include "tests/data/files.h"

namespace limber {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

Tensor decoded(const std::string& bytes) {
  auto image = decode_image(bytes_of(bytes));
  EXPECT_TRUE(image.ok()) << image.status().message();
  return image.ok() ? *image : Tensor();
}

void expect_same(const Tensor& got, const Tensor& want, int tolerance = 0) {
  ASSERT_EQ(got.type().to_string(), want.type().to_string());
  for (size_t i = 0; i < want.data<uint8_t>().size(); ++i)
    ASSERT_NEAR(got.data<uint8_t>()[i], want.data<uint8_t>()[i], tolerance) << i;
}

void expect_refused(const std::string& bytes, Code code, const std::string& part) {
  expect_failure(decode_image(bytes_of(bytes)), code, {part});
}

// Cut short anywhere it is refused; damaged anywhere it does not crash.
void expect_robust(const std::string& whole, size_t least_missing = 1) {
  for (size_t size = 0; size + least_missing < whole.size(); size += 1 + whole.size() / 60)
    EXPECT_FALSE(decode_image(bytes_of(whole.substr(0, size))).ok()) << size << " of " << whole.size();
  Random random(5);
  for (int i = 0; i < 200; ++i) {
    std::string damaged = whole;
    for (int k = 0; k < 3; ++k) damaged[random.below(damaged.size())] = static_cast<char>(random.next());
    const auto image = decode_image(bytes_of(damaged));
    EXPECT_TRUE(image.ok() || !image.status().message().empty());
  }
}

std::string number(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// --- WebP -------------------------------------------------------------------------------------------

std::string webp(const Tensor& image, bool lossless) {
  const int width = static_cast<int>(image.shape().dim(1)), height = static_cast<int>(image.shape().dim(0));
  uint8_t* out = nullptr;
  const auto* rgb = static_cast<const uint8_t*>(image.raw());
  const size_t size = lossless ? WebPEncodeLosslessRGB(rgb, width, height, 3 * width, &out)
                               : WebPEncodeRGB(rgb, width, height, 3 * width, 95, &out);
  std::string bytes(reinterpret_cast<const char*>(out), size);
  WebPFree(out);
  return bytes;
}

TEST(WebP, ComesBackAsItWasWritten) {
  const Tensor image = *draw_image(21, 34, 1);
  expect_same(decoded(webp(image, true)), image);
  EXPECT_EQ(decoded(webp(image, false)).type().to_string(), "u8[21,34,3]");
  expect_robust(webp(image, true), 8);
  expect_robust(webp(image, false), 8);
}

// --- TIFF -------------------------------------------------------------------------------------------

struct TiffKind {
  uint16_t photometric = PHOTOMETRIC_RGB, compression = COMPRESSION_LZW, samples = 3, bits = 8;
  uint16_t orientation = 1;
};

std::string tiff(const std::string& rows, uint32_t width, uint32_t height, const TiffKind& kind) {
  const Folder folder;
  const std::string path = folder / "x.tif";
  TIFF* out = TIFFOpen(path.c_str(), "w");
  TIFFSetField(out, TIFFTAG_IMAGEWIDTH, width);
  TIFFSetField(out, TIFFTAG_IMAGELENGTH, height);
  TIFFSetField(out, TIFFTAG_SAMPLESPERPIXEL, kind.samples);
  TIFFSetField(out, TIFFTAG_BITSPERSAMPLE, kind.bits);
  TIFFSetField(out, TIFFTAG_PHOTOMETRIC, kind.photometric);
  TIFFSetField(out, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(out, TIFFTAG_COMPRESSION, kind.compression);
  TIFFSetField(out, TIFFTAG_ORIENTATION, kind.orientation);
  TIFFSetField(out, TIFFTAG_ROWSPERSTRIP, height);
  if (kind.samples == 4 && kind.photometric == PHOTOMETRIC_RGB) {
    const uint16_t alpha = EXTRASAMPLE_UNASSALPHA;
    TIFFSetField(out, TIFFTAG_EXTRASAMPLES, 1, &alpha);
  }
  if (kind.bits == 32) TIFFSetField(out, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_IEEEFP);
  std::string pixels = rows;
  const size_t stride = rows.size() / height;
  for (uint32_t y = 0; y < height; ++y) EXPECT_EQ(TIFFWriteScanline(out, &pixels[y * stride], y), 1);
  TIFFClose(out);
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string text_of(const Tensor& image) { return {static_cast<const char*>(image.raw()), image.bytes()}; }

TEST(Tiff, ComesBackAsItWasWritten) {
  const Tensor image = *draw_image(13, 17, 2);
  for (const uint16_t how :
       {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS})
    expect_same(decoded(tiff(text_of(image), 17, 13, {.compression = how})), image);
  expect_robust(tiff(text_of(image), 17, 13, {.compression = COMPRESSION_LZW}), 8);
  expect_robust(tiff(text_of(image), 17, 13, {.compression = COMPRESSION_NONE}), 8);
}

TEST(Tiff, GreyInkAndAlpha) {
  const std::string grey = "\x10\x80";
  const auto pixel = [](const Tensor& image, size_t i) {
    const auto d = image.data<uint8_t>();
    return std::array<int, 3>{d[3 * i], d[3 * i + 1], d[3 * i + 2]};
  };
  EXPECT_EQ(pixel(decoded(tiff(grey, 2, 1, {.photometric = PHOTOMETRIC_MINISBLACK, .samples = 1})), 1),
            (std::array<int, 3>{0x80, 0x80, 0x80}));
  EXPECT_EQ(pixel(decoded(tiff(grey, 2, 1, {.photometric = PHOTOMETRIC_MINISWHITE, .samples = 1})), 1),
            (std::array<int, 3>{0x7f, 0x7f, 0x7f}));
  const std::string ink("\xff\x00\x00\x00", 4);
  EXPECT_EQ(pixel(decoded(tiff(ink, 1, 1, {.photometric = PHOTOMETRIC_SEPARATED, .samples = 4})), 0),
            (std::array<int, 3>{0, 255, 255}));
  const std::string clear("\xc8\x64\x32\x00", 4);
  EXPECT_EQ(pixel(decoded(tiff(clear, 1, 1, {.samples = 4})), 0), (std::array<int, 3>{200, 100, 50}))
      << "alpha is dropped, not multiplied";
}

TEST(Tiff, WhatCannotBeConvertedIsSaid) {
  const std::string floats(16, '\0');
  expect_refused(tiff(floats, 2, 2, {.photometric = PHOTOMETRIC_MINISBLACK, .samples = 1, .bits = 32}),
                 Code::kUnsupported, "convert it to PNG");
}

// --- BMP --------------------------------------------------------------------------------------------

struct BmpKind {
  int bits = 24;
  bool top_down = false;
  int compression = 0;
  std::string palette;  // or colour masks
};

// `rows` as they lie in the file, padded.
std::string bmp(const std::string& rows, int width, int height, const BmpKind& kind) {
  const size_t begin = 54 + kind.palette.size();
  std::string out = "BM" + number(begin + rows.size(), 4) + number(0, 4) + number(begin, 4);
  out += number(40, 4) + number(static_cast<uint64_t>(width), 4) +
         number(static_cast<uint64_t>(kind.top_down ? -height : height), 4) + number(1, 2) +
         number(static_cast<uint64_t>(kind.bits), 2) + number(static_cast<uint64_t>(kind.compression), 4) +
         number(rows.size(), 4) + number(2835, 4) + number(2835, 4) +
         number(kind.bits <= 8 ? kind.palette.size() / 4 : 0, 4) + number(0, 4);
  return out + kind.palette + rows;
}

Tensor pixels(std::initializer_list<uint8_t> values, int64_t height, int64_t width) {
  return Tensor::from(values, Shape{height, width, 3});
}

TEST(Bmp, EveryDepth) {
  const Tensor want = pixels({255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255}, 2, 2);
  const std::string blue_white("\xff\0\0\xff\xff\xff\0\0", 8), red_green("\0\0\xff\0\xff\0\0\0", 8);
  expect_same(decoded(bmp(blue_white + red_green, 2, 2, {})), want);
  expect_same(decoded(bmp(red_green + blue_white, 2, 2, {.top_down = true})), want);
  const std::string palette("\0\0\xff\0\0\xff\0\0\xff\0\0\0\xff\xff\xff\0", 16);
  expect_same(decoded(bmp(std::string("\2\3\0\0\0\1\0\0", 8), 2, 2, {.bits = 8, .palette = palette})), want);
  expect_same(decoded(bmp(std::string("\x23\0\0\0\x01\0\0\0", 8), 2, 2, {.bits = 4, .palette = palette})),
              want);
  const std::string fives = number(0x001f, 2) + number(0x7fff, 2) + number(0x7c00, 2) + number(0x03e0, 2);
  expect_same(decoded(bmp(fives, 2, 2, {.bits = 16})), want);
  const std::string masks = number(0xff, 4) + number(0xff00, 4) + number(0xff0000, 4);
  const std::string wide = number(0xff0000, 4) + number(0xffffff, 4) + number(0xff, 4) + number(0xff00, 4);
  expect_same(decoded(bmp(wide, 2, 2, {.bits = 32, .compression = 3, .palette = masks})), want);
  const std::string two("\0\0\0\0\xff\xff\xff\0", 8);
  expect_same(decoded(bmp(std::string("\x80\0\0\0", 4), 2, 1, {.bits = 1, .palette = two})),
              pixels({255, 255, 255, 0, 0, 0}, 1, 2));
  expect_robust(bmp(blue_white + red_green, 2, 2, {}));
}

TEST(Bmp, WhatIsNotReadIsSaid) {
  expect_refused(bmp("", 0, 2, {}), Code::kCorrupt, "0 pixels wide");
  expect_refused(bmp("", 20000, 2, {}), Code::kResourceExhausted, "20000x2");
  expect_refused(bmp("", 100, 100, {}), Code::kCorrupt, "cut short");
  expect_refused(bmp("abcd", 2, 1, {.bits = 8, .compression = 1}), Code::kUnsupported, "compression 1");
  expect_refused(bmp("abcd", 2, 1, {.bits = 7}), Code::kCorrupt, "7 bits");
  const std::string holes = number(0xf0f0, 4) + number(0xff00, 4) + number(0xff0000, 4);
  expect_refused(bmp(number(0, 4), 1, 1, {.bits = 32, .compression = 3, .palette = holes}), Code::kCorrupt,
                 "one run of bits");
}

// --- PNM --------------------------------------------------------------------------------------------

TEST(Pnm, EveryKind) {
  const Tensor colours = pixels({255, 0, 0, 0, 255, 128}, 1, 2);
  expect_same(decoded("P3\n# a comment 7\n2 1 255\n255 0 0\n0 255 128\n"), colours);
  expect_same(decoded(std::string("P6 2 1\n255\n\xff\0\0\0\xff\x80", 18)), colours);
  expect_same(decoded(std::string("P6 1 1 65535 \xff\xff\0\0\x80\x80", 20)), pixels({255, 0, 128}, 1, 1));
  expect_same(decoded("P2 2 1 15 15 3"), pixels({255, 255, 255, 51, 51, 51}, 1, 2));
  expect_same(decoded("P5 2 1 255 az"), pixels({97, 97, 97, 122, 122, 122}, 1, 2));
  expect_same(decoded("P1 2 1 10"), pixels({0, 0, 0, 255, 255, 255}, 1, 2));
  expect_same(decoded("P4 2 1\n\x80"), pixels({0, 0, 0, 255, 255, 255}, 1, 2));
  expect_robust(std::string("P6 2 1\n255\n\xff\0\0\0\xff\x80", 18));
}

TEST(Pnm, WhatIsNotReadIsSaid) {
  expect_refused("P6 20000 1 255\n", Code::kResourceExhausted, "20000x1");
  expect_refused("P6 2 1 70000\n", Code::kCorrupt, "above 65535");
  expect_refused("P6 2 1 0\n", Code::kCorrupt, "highest value is 0");
  expect_refused("P6 2 2 255\nabc", Code::kCorrupt, "cut short");
  expect_refused("P3 1 1 9 1 2 10", Code::kCorrupt, "above 9");
  expect_refused("P6 x", Code::kCorrupt, "no number");
}

// --- JPEG -------------------------------------------------------------------------------------------

std::string jpeg(const std::string& rows, int width, int height, int samples, J_COLOR_SPACE space,
                 const std::string& exif = "") {
  jpeg_compress_struct out{};
  jpeg_error_mgr errors{};
  out.err = jpeg_std_error(&errors);
  jpeg_create_compress(&out);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&out, &bytes, &size);
  out.image_width = static_cast<JDIMENSION>(width);
  out.image_height = static_cast<JDIMENSION>(height);
  out.input_components = samples;
  out.in_color_space = samples == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&out);
  jpeg_set_colorspace(&out, space);
  jpeg_set_quality(&out, 100, TRUE);
  jpeg_start_compress(&out, TRUE);
  if (!exif.empty())
    jpeg_write_marker(&out, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  std::string pixels = rows;
  while (out.next_scanline < out.image_height) {
    auto* row = reinterpret_cast<JSAMPROW>(&pixels[out.next_scanline * static_cast<size_t>(width * samples)]);
    jpeg_write_scanlines(&out, &row, 1);
  }
  jpeg_finish_compress(&out);
  std::string result(reinterpret_cast<char*>(bytes), size);
  jpeg_destroy_compress(&out);
  std::free(bytes);
  return result;
}

std::string exif_of(int orientation) {
  return std::string("Exif\0\0II", 8) + number(42, 2) + number(8, 4) + number(1, 2) + number(0x0112, 2) +
         number(3, 2) + number(1, 4) + number(static_cast<uint64_t>(orientation), 4) + number(0, 4);
}

TEST(Jpeg, InkBecomesLight) {
  // As Adobe stores it: 255 is no ink. Cyan, then half black.
  std::string rows;
  for (int i = 0; i < 8 * 8; ++i) rows += i % 8 < 4 ? std::string("\x00\xff\xff\xff", 4) : "\xff\xff\xff\x80";
  for (const J_COLOR_SPACE space : {JCS_CMYK, JCS_YCCK}) {
    const Tensor image = decoded(jpeg(rows, 8, 8, 4, space));
    const auto d = image.data<uint8_t>();
    EXPECT_NEAR(d[0], 0, 6);
    EXPECT_NEAR(d[1], 255, 6);
    EXPECT_NEAR(d[2], 255, 6);
    for (size_t c = 21; c < 24; ++c) EXPECT_NEAR(d[c], 128, 6);
  }
}

// --- which way up -----------------------------------------------------------------------------------

// A picture with a light corner at the top left, and the same as a camera would store it.
TEST(Orientation, EveryPictureStandsUpright) {
  constexpr int kWide = 24, kHigh = 16;
  const auto light = [](int y, int x) { return y < 8 && x < 8 ? 250 : x < 8 ? 120 : 10; };
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const bool turned = orientation > 4;
    const int rows = turned ? kWide : kHigh, columns = turned ? kHigh : kWide;
    std::string stored;
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        // What EXIF says of the stored first row and column, per number.
        const std::array<std::pair<int, int>, 8> at{{{r, c},
                                                     {r, columns - 1 - c},
                                                     {rows - 1 - r, columns - 1 - c},
                                                     {rows - 1 - r, c},
                                                     {c, r},
                                                     {c, rows - 1 - r},
                                                     {columns - 1 - c, rows - 1 - r},
                                                     {columns - 1 - c, r}}};
        const auto [y, x] = at[static_cast<size_t>(orientation - 1)];
        stored += std::string(3, static_cast<char>(light(y, x)));
      }
    }
    const Tensor image = decoded(jpeg(stored, columns, rows, 3, JCS_YCbCr, exif_of(orientation)));
    ASSERT_EQ(image.type().to_string(), "u8[16,24,3]") << orientation;
    for (int y = 0; y < kHigh; ++y) {
      for (int x = 0; x < kWide; ++x)
        ASSERT_NEAR(image.data<uint8_t>()[static_cast<size_t>(3 * (y * kWide + x))], light(y, x), 12)
            << orientation << ": " << y << ", " << x;
    }
    const Tensor same = decoded(tiff(stored, static_cast<uint32_t>(columns), static_cast<uint32_t>(rows),
                                     {.orientation = static_cast<uint16_t>(orientation)}));
    ASSERT_EQ(same.type().to_string(), "u8[16,24,3]") << orientation;
    EXPECT_EQ(same.data<uint8_t>()[0], 250) << orientation;
    EXPECT_EQ(same.data<uint8_t>()[3 * 15 * 24], 120) << orientation;
  }
}

TEST(Orientation, DamagedExifIsPassedOver) {
  const std::string rows(3 * 16 * 8, '\x55');
  const std::string sound = exif_of(6);
  EXPECT_EQ(decoded(jpeg(rows, 16, 8, 3, JCS_YCbCr, sound)).type().to_string(), "u8[16,8,3]");
  for (size_t size = 0; size < sound.size() - 6; ++size) {
    EXPECT_EQ(decoded(jpeg(rows, 16, 8, 3, JCS_YCbCr, sound.substr(0, size))).type().to_string(),
              "u8[8,16,3]")
        << size;
  }
  EXPECT_EQ(decoded(jpeg(rows, 16, 8, 3, JCS_YCbCr, exif_of(9))).type().to_string(), "u8[8,16,3]");
  std::string far = sound;
  far[10] = '\xff';  // where the directory begins
  EXPECT_EQ(decoded(jpeg(rows, 16, 8, 3, JCS_YCbCr, far)).type().to_string(), "u8[8,16,3]");
}

TEST(Png, SizeBeyondTheLimitIsSaid) {
  std::string png = *encode_png(*draw_image(2, 2, 1));
  png[18] = '\x4e';
  png[19] = '\x20';  // 20000 wide
  expect_failure(decode_image(bytes_of(png)), Code::kResourceExhausted,
                 {"20000x2", "16384", "scale it down"});
}

TEST(IsImageName, KnowsEveryKind) {
  for (const char* name : {"a.webp", "a.TIF", "a.tiff", "a.bmp", "a.ppm", "a.pgm", "a.pbm"})
    EXPECT_TRUE(is_image_name(name)) << name;
  EXPECT_FALSE(is_image_name("a.gif"));
}

}  // namespace
}  // namespace limber
