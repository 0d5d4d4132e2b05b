#include "data/image.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/random.h"
#include "data/encode_jpeg.h"

namespace limber {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

Tensor pixels(std::initializer_list<uint8_t> values, int64_t height, int64_t width, int64_t channels) {
  return Tensor::from(values, Shape{height, width, channels});
}

// A 16x8 grey JPEG, left half 0x40 and right half 0xC0, written by another program.
// clang-format off
constexpr unsigned char kGreyJpeg[] = {
    0xff, 0xd8, 0xff, 0xe0, 0x00, 0x10, 0x4a, 0x46, 0x49, 0x46, 0x00, 0x01, 0x01, 0x00, 0x00, 0x01, 0x00,
    0x01, 0x00, 0x00, 0xff, 0xdb, 0x00, 0x43, 0x00, 0x03, 0x02, 0x02, 0x03, 0x02, 0x02, 0x03, 0x03, 0x03,
    0x03, 0x04, 0x03, 0x03, 0x04, 0x05, 0x08, 0x05, 0x05, 0x04, 0x04, 0x05, 0x0a, 0x07, 0x07, 0x06, 0x08,
    0x0c, 0x0a, 0x0c, 0x0c, 0x0b, 0x0a, 0x0b, 0x0b, 0x0d, 0x0e, 0x12, 0x10, 0x0d, 0x0e, 0x11, 0x0e, 0x0b,
    0x0b, 0x10, 0x16, 0x10, 0x11, 0x13, 0x14, 0x15, 0x15, 0x15, 0x0c, 0x0f, 0x17, 0x18, 0x16, 0x14, 0x18,
    0x12, 0x14, 0x15, 0x14, 0xff, 0xc0, 0x00, 0x0b, 0x08, 0x00, 0x08, 0x00, 0x10, 0x01, 0x01, 0x11, 0x00,
    0xff, 0xc4, 0x00, 0x1f, 0x00, 0x00, 0x01, 0x05, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0xff,
    0xc4, 0x00, 0xb5, 0x10, 0x00, 0x02, 0x01, 0x03, 0x03, 0x02, 0x04, 0x03, 0x05, 0x05, 0x04, 0x04, 0x00,
    0x00, 0x01, 0x7d, 0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51,
    0x61, 0x07, 0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1,
    0xf0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25, 0x26, 0x27, 0x28,
    0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a,
    0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73,
    0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93,
    0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2,
    0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca,
    0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8,
    0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xff, 0xda, 0x00, 0x08, 0x01,
    0x01, 0x00, 0x00, 0x3f, 0x00, 0xf9, 0x52, 0xbf, 0x55, 0xab, 0xff, 0xd9};
// clang-format on

std::string grey_jpeg() { return {reinterpret_cast<const char*>(kGreyJpeg), sizeof(kGreyJpeg)}; }

TEST(DecodeImage, PngComesBackAsItWasWritten) {
  const Tensor image = *draw_image(37, 53, 1);
  const auto png = encode_png(image);
  ASSERT_TRUE(png.ok());
  const auto back = decode_image(bytes_of(*png));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->type().to_string(), "u8[37,53,3]");
  EXPECT_TRUE(
      std::equal(image.data<uint8_t>().begin(), image.data<uint8_t>().end(), back->data<uint8_t>().begin()));
}

TEST(DecodeImage, GreyJpegGetsThreeEqualChannels) {
  const auto image = decode_image(bytes_of(grey_jpeg()));
  ASSERT_TRUE(image.ok()) << image.status().message();
  ASSERT_EQ(image->type().to_string(), "u8[8,16,3]");
  const auto data = image->data<uint8_t>();
  for (int x : {0, 15}) {
    const auto* pixel = data.data() + 3 * x;
    EXPECT_EQ(pixel[0], pixel[1]);
    EXPECT_EQ(pixel[1], pixel[2]);
    EXPECT_NEAR(pixel[0], x == 0 ? 0x40 : 0xC0, 4);
  }
}

TEST(DecodeImage, DamagedFilesEndInAStatus) {
  const std::string png = *encode_png(*draw_image(16, 16, 2));
  for (const std::string& whole : {png, grey_jpeg()}) {
    for (size_t size = 0; size + 12 < whole.size(); size += 7) {
      EXPECT_FALSE(decode_image(bytes_of(whole.substr(0, size))).ok()) << size;
    }
    Random random(3);
    for (int i = 0; i < 300; ++i) {  // must not crash; some changes are harmless to the format
      std::string damaged = whole;
      for (int k = 0; k < 4; ++k) damaged[random.below(damaged.size())] = static_cast<char>(random.next());
      const auto image = decode_image(bytes_of(damaged));
      EXPECT_TRUE(image.ok() || !image.status().message().empty());
    }
  }
  EXPECT_EQ(decode_image(bytes_of("GIF89a")).status().code(), Code::kCorrupt);
}

TEST(DecodeImage, HostileSizeIsRefusedBeforeAnythingIsAllocated) {
  std::string jpeg = grey_jpeg();
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  for (size_t i = 5; i < 9; ++i) jpeg[frame + i] = '\x7f';  // height and width 0x7f7f
  const auto image = decode_image(bytes_of(jpeg));
  EXPECT_EQ(image.status().code(), Code::kResourceExhausted) << image.status().message();
}

// Of any length: shorter than a chunk of the writer, and many of them.
TEST(EncodeJpeg, ComesBackNearlyAsItWas) {
  Random random(1);
  for (const int64_t side : {8, 400}) {
    Tensor image = *Tensor::allocate({DType::kU8, {side, side, 3}});
    const auto to = image.data<uint8_t>();
    for (size_t i = 0; i < to.size(); i += 3) to[i] = to[i + 1] = to[i + 2] = static_cast<uint8_t>(random.below(256));
    const auto jpeg = encode_jpeg(image, 100);
    ASSERT_TRUE(jpeg.ok()) << jpeg.status().message();
    const auto back = decode_image(bytes_of(*jpeg));
    ASSERT_TRUE(back.ok()) << back.status().message();
    ASSERT_EQ(back->shape(), image.shape());
    int furthest = 0;
    for (size_t i = 0; i < to.size(); ++i)
      furthest = std::max(furthest, std::abs(int{back->data<uint8_t>()[i]} - int{to[i]}));
    EXPECT_LE(furthest, 6) << side;
    if (side == 400) {
      EXPECT_GT(jpeg->size(), 100000U);
    }
  }
}

TEST(LoadImage, NamesTheFile) {
  EXPECT_NE(load_image("no/such.png").status().message().find("no/such.png"), std::string::npos);
}

TEST(IsImageName, GoesByExtension) {
  EXPECT_TRUE(is_image_name("a/b.JPG"));
  EXPECT_TRUE(is_image_name("x.jpeg"));
  EXPECT_TRUE(is_image_name("x.png"));
  EXPECT_FALSE(is_image_name("x.npy"));
  EXPECT_FALSE(is_image_name("png"));
}

TEST(Resize, SameSizeIsTheIdentity) {
  const Tensor image = *draw_image(5, 6, 3);
  const Tensor same = *resize(image, 5, 6);
  EXPECT_TRUE(
      std::equal(image.data<uint8_t>().begin(), image.data<uint8_t>().end(), same.data<uint8_t>().begin()));
}

TEST(Resize, EnlargesBilinearlyWithHalfPixelCentres) {
  const Tensor wide = *resize(pixels({0, 100}, 1, 2, 1), 1, 4);
  const std::vector<uint8_t> expected{0, 25, 75, 100};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), wide.data<uint8_t>().begin()));
}

TEST(Resize, ShrinkingAveragesInsteadOfSkipping) {
  const Tensor stripes = pixels({0, 200, 0, 200, 0, 200, 0, 200}, 1, 8, 1);
  const Tensor small = *resize(stripes, 1, 2);
  EXPECT_NEAR(small.data<uint8_t>()[0], 100, 10);
  EXPECT_NEAR(small.data<uint8_t>()[1], 100, 10);
}

TEST(Resize, RefusesSidesOutOfRange) {
  const Tensor image = *draw_image(4, 4, 0);
  EXPECT_FALSE(resize(image, 0, 4).ok());
  EXPECT_FALSE(resize(image, 4, kMaxImageSide + 1).ok());
}

TEST(ResizeShorter, KeepsTheAspectRatio) {
  EXPECT_EQ(resize_shorter(*draw_image(40, 80, 0), 20)->type().to_string(), "u8[20,40,3]");
  EXPECT_EQ(resize_shorter(*draw_image(90, 30, 0), 60)->type().to_string(), "u8[180,60,3]");
}

TEST(CropCentre, TakesTheMiddle) {
  const Tensor image = pixels({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 4, 4, 1);
  const Tensor middle = *crop_centre(image, 2, 2);
  const std::vector<uint8_t> expected{5, 6, 9, 10};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), middle.data<uint8_t>().begin()));
  EXPECT_FALSE(crop_centre(image, 5, 2).ok());
}

TEST(Normalise, ScalesShiftsAndSeparatesChannels) {
  const Tensor image = pixels({0, 51, 255, 102, 0, 0}, 1, 2, 3);
  Normalisation how;
  how.mean = {0.F, 0.1F, 0.5F};
  how.std = {1.F, 0.1F, 0.5F};
  std::vector<float> chw(6);
  normalise(image, 3, how, chw);
  const std::vector<float> expected{0.F, 0.4F, 1.F, -1.F, 1.F, -1.F};
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(chw[i], expected[i], 1e-6) << i;
}

TEST(Normalise, OneChannelIsLuma) {
  std::vector<float> grey(1);
  normalise(pixels({255, 0, 0}, 1, 1, 3), 1, {}, grey);
  EXPECT_NEAR(grey[0], 0.299F, 1e-6);
}

TEST(DrawImage, RepeatsForASeed) {
  const Tensor a = *draw_image(8, 8, 7), b = *draw_image(8, 8, 7), c = *draw_image(8, 8, 8);
  EXPECT_TRUE(std::equal(a.data<uint8_t>().begin(), a.data<uint8_t>().end(), b.data<uint8_t>().begin()));
  EXPECT_FALSE(std::equal(a.data<uint8_t>().begin(), a.data<uint8_t>().end(), c.data<uint8_t>().begin()));
}

}  // namespace
}  // namespace limber
