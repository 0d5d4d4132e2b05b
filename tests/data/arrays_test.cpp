// Data sets in a few large files: CIFAR's, IDX, .npy.
#include <gtest/gtest.h>
#include <zlib.h>

#include <limits>

#include "base/random.h"
#include "data/dataset.h"
#include "tensor/npy.h"
#include "tests/data/files.h"

namespace limber {
namespace {

// Red 10 + label, green 20 + label, blue 30 + label.
std::string cifar_record(std::initializer_list<char> labels) {
  std::string record(labels);
  const char last = record.back();
  for (int c = 1; c <= 3; ++c) record += std::string(1024, static_cast<char>(10 * c + last));
  return record;
}

TEST(Cifar, TenAndHundredAreRead) {
  const Folder folder;
  const auto a = folder.write("a.bin", cifar_record({3}) + cifar_record({9}));
  const auto b = folder.write("b.bin", cifar_record({1}));
  const auto ten = open_cifar({a, b}, CifarKind::kCifar10);
  ASSERT_TRUE(ten.ok()) << ten.status().message();
  ASSERT_EQ((*ten)->size(), 3u);
  EXPECT_EQ((*ten)->class_names()[9], "truck");
  EXPECT_EQ((*ten)->name(2), b + "[0]");
  const Sample sample = *(*ten)->get(2);
  EXPECT_EQ(sample.image.type().to_string(), "u8[32,32,3]");
  EXPECT_EQ(sample.label, 1);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(sample.image.data<uint8_t>()[i], 11 + 10 * i);

  const auto c = folder.write("c.bin", cifar_record({7, 99}));
  const auto hundred = open_cifar({c}, CifarKind::kCifar100);
  ASSERT_TRUE(hundred.ok()) << hundred.status().message();
  EXPECT_EQ((*hundred)->label(0), 99);
  EXPECT_EQ((*hundred)->class_names().size(), 100u);
}

TEST(Cifar, NamesComeFromTheFileBeside) {
  const Folder folder;
  const auto a = folder.write("a.bin", cifar_record({0}));
  folder.write("batches.meta.txt", "p\r\nq\nr\ns\nt\nu\nv\nw\nx\ny\n\n");
  EXPECT_EQ((*open_cifar({a}, CifarKind::kCifar10))->class_names().front(), "p");
  expect_failure(open_cifar({a}, CifarKind::kCifar10, {"cat"}), Code::kInvalidArgument, {"'cat'"});
  folder.write("batches.meta.txt", "only\n");
  expect_failure(open_cifar({a}, CifarKind::kCifar10), Code::kCorrupt, {"batches.meta.txt", "1 class names"});
}

TEST(Cifar, HostileFilesAreRefused) {
  const Folder folder;
  const std::string good = cifar_record({3});
  expect_failure(open_cifar({folder.write("cut.bin", good.substr(1))}, CifarKind::kCifar10), Code::kCorrupt,
                 {"cut.bin", "3072 bytes"});
  expect_failure(open_cifar({folder.write("none.bin", "")}, CifarKind::kCifar10), Code::kCorrupt,
                 {"none.bin"});
  expect_failure(open_cifar({folder.write("label.bin", good + cifar_record({10}))}, CifarKind::kCifar10),
                 Code::kCorrupt, {"label.bin[1]", "label 10", "0..9"});
  expect_failure(open_cifar({folder / "absent.bin"}, CifarKind::kCifar10), Code::kNotFound, {"absent.bin"});
}

std::string idx(std::initializer_list<uint32_t> dims, const std::string& data, char type = 8) {
  std::string out{'\0', '\0', type, static_cast<char>(dims.size())};
  for (const uint32_t d : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(d >> shift);
  }
  return out + data;
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(text.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(Idx, PlainAndGzipAreTheSame) {
  const Folder folder;
  const std::string images = idx({2, 2, 3}, "abcdefghijkl"), labels = idx({2}, std::string("\x04\x00", 2));
  const auto plain = open_idx(folder.write("i", images), folder.write("l", labels));
  const auto packed = open_idx(folder.write("i.gz", gzip(images)), folder.write("l.gz", gzip(labels)));
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  ASSERT_TRUE(packed.ok()) << packed.status().message();
  for (const auto* data : {&*plain, &*packed}) {
    ASSERT_EQ((*data)->size(), 2u);
    EXPECT_EQ((*data)->class_names().size(), 5u);
    const Sample sample = *(*data)->get(1);
    EXPECT_EQ(sample.image.type().to_string(), "u8[2,3,1]");
    EXPECT_EQ(sample.image.data<uint8_t>()[0], 'g');
    EXPECT_EQ((*data)->label(0), 4);
  }
}

TEST(Idx, HostileFilesAreRefused) {
  const Folder folder;
  const std::string good = idx({2, 2, 3}, "abcdefghijkl");
  const auto labels = folder.write("labels", idx({2}, "\x01\x02"));
  const auto open = [&](const std::string& bytes) { return open_idx(folder.write("images", bytes), labels); };
  ASSERT_TRUE(open(good).ok());
  for (size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(open(good.substr(0, n)).ok()) << n;
  expect_failure(open(good + "x"), Code::kCorrupt, {"images", "13 bytes"});
  expect_failure(open(idx({0xffffffff, 0xffffffff, 0xffffffff}, "abc")), Code::kCorrupt, {"images"});
  expect_failure(open(idx({0, 0xffffffff, 0xffffffff}, "")), Code::kCorrupt, {"images"});
  expect_failure(open(idx({0, 2, 3}, "")), Code::kCorrupt, {"images"});
  expect_failure(open(idx({12}, "abcdefghijkl")), Code::kInvalidArgument, {"[12]"});
  expect_failure(open(idx({2, 2, 3}, "abcdefghijkl", 0x0d)), Code::kUnsupported, {"0x0d"});
  expect_failure(open(idx({3, 2, 2}, "abcdefghijkl")), Code::kInvalidArgument, {"3 images"});
  expect_failure(open_idx(folder / "images", folder / "images"), Code::kInvalidArgument,
                 {"one number an image"});
}

TEST(Idx, DamagedGzipIsRefused) {
  const Folder folder;
  const auto labels = folder.write("labels", idx({2}, "\x01\x02"));
  const std::string good = gzip(idx({2, 2, 3}, "abcdefghijkl"));
  const auto open = [&](const std::string& bytes) {
    return open_idx(folder.write("images.gz", bytes), labels);
  };
  ASSERT_TRUE(open(good).ok());
  for (size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(open(good.substr(0, n)).ok()) << n;
  expect_failure(open(good + "more"), Code::kCorrupt, {"images.gz"});
  expect_failure(open(good + "more" + good.substr(good.size() - 4)), Code::kCorrupt, {"gzip -t"});
  std::string bomb = good;  // claims four gigabytes
  for (size_t i = 1; i <= 4; ++i) bomb[bomb.size() - i] = '\xff';
  expect_failure(open(bomb), Code::kResourceExhausted, {"images.gz", "4294967295"});
  bomb[bomb.size() - 1] = '\x10';
  expect_failure(open(bomb), Code::kCorrupt, {"cannot hold"});
  Random random(1);
  for (int i = 0; i < 300; ++i) {  // the checksum sees every change of the content
    std::string damaged = good;
    damaged[10 + random.below(damaged.size() - 10)] ^= static_cast<char>(1 + random.below(255));
    EXPECT_FALSE(open(damaged).ok()) << i;
  }
}

TEST(Idx, LabelsBeyondTheExpectedClassesAreRefused) {
  const Folder folder;
  const auto images = folder.write("i", idx({2, 1, 1}, "ab"));
  const auto labels = folder.write("l", idx({2}, "\x01\x02"));
  EXPECT_EQ((*open_idx(images, labels, {"x", "y", "z"}))->class_names()[2], "z");
  expect_failure(open_idx(images, labels, {"x", "y"}), Code::kInvalidArgument, {"label 2", "0..1"});
}

Tensor ramp(const Shape& shape) {
  Tensor images = *Tensor::allocate({DType::kU8, shape});
  for (int64_t i = 0; i < images.elements(); ++i)
    static_cast<uint8_t*>(images.raw())[i] = static_cast<uint8_t>(i);
  return images;
}

TEST(Arrays, EveryLayoutGivesTheSameImage) {
  const Tensor labels = Tensor::from<int32_t>({0, 1}, Shape{2});
  const auto last = open_arrays(ramp(Shape{2, 2, 2, 3}), labels, "a");
  const auto first = open_arrays(ramp(Shape{2, 3, 2, 2}), labels, "a");
  const auto grey = open_arrays(ramp(Shape{2, 2, 2}), labels, "a");
  ASSERT_TRUE(last.ok() && first.ok() && grey.ok());
  const Tensor a = (*last)->get(1)->image, b = (*first)->get(1)->image, c = (*grey)->get(1)->image;
  EXPECT_EQ(a.type().to_string(), "u8[2,2,3]");
  EXPECT_EQ(b.type(), a.type());
  EXPECT_EQ(c.type().to_string(), "u8[2,2,1]");
  EXPECT_EQ(a.data<uint8_t>()[4], 16);              // [1][0][1][1]
  EXPECT_EQ(b.data<uint8_t>()[4], 12 + 4 * 1 + 1);  // [1][1][0][1]
  EXPECT_EQ(c.data<uint8_t>()[3], 7);
}

TEST(Arrays, FloatsInEitherRangeBecomeBytes) {
  const Tensor labels = Tensor::from<int64_t>({0}, Shape{1});
  const auto unit = open_arrays(Tensor::from<float>({0, 0.5F, 1, 0.1F}, Shape{1, 2, 2}), labels, "u");
  const auto wide = open_arrays(Tensor::from<float>({0, 0.5F, 255, 1.4F}, Shape{1, 2, 2}), labels, "w");
  const uint8_t unit_bytes[] = {0, 128, 255, 26}, wide_bytes[] = {0, 1, 255, 1};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ((*unit)->get(0)->image.data<uint8_t>()[i], unit_bytes[i]);
    EXPECT_EQ((*wide)->get(0)->image.data<uint8_t>()[i], wide_bytes[i]);
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {-0.1F, 255.5F, nan, std::numeric_limits<float>::infinity()}) {
    expect_failure(open_arrays(Tensor::from<float>({0, bad, 1, 0}, Shape{1, 2, 2}), labels, "f"),
                   Code::kInvalidArgument, {"f", "element 1"});
  }
}

TEST(Arrays, BadShapesAndLabelsAreRefused) {
  const Tensor images = ramp(Shape{2, 2, 2});
  const auto with = [&](const Tensor& labels) { return open_arrays(images, labels, "a"); };
  expect_failure(with(Tensor::from<int64_t>({1}, Shape{1})), Code::kInvalidArgument, {"[1]", "2 images"});
  expect_failure(with(Tensor::from<int64_t>({1, -1}, Shape{2})), Code::kInvalidArgument,
                 {"label -1 of image 1"});
  expect_failure(with(Tensor::from<int64_t>({1, int64_t{1} << 40}, Shape{2})), Code::kInvalidArgument,
                 {"1099511627776"});
  expect_failure(with(Tensor::from<float>({1, 2}, Shape{2})), Code::kInvalidArgument, {"f32"});
  EXPECT_TRUE(with(Tensor::from<uint8_t>({1, 2}, Shape{2, 1})).ok());
  const Tensor labels = Tensor::from<int64_t>({1, 0}, Shape{2});
  expect_failure(open_arrays(ramp(Shape{2, 2, 2, 2}), labels, "a"), Code::kInvalidArgument, {"[2,2,2,2]"});
  expect_failure(open_arrays(ramp(Shape{0, 2, 2}), labels, "a"), Code::kInvalidArgument,
                 {"at least one image"});
  expect_failure(open_arrays(ramp(Shape{2, 0, 2}), labels, "a"), Code::kInvalidArgument, {"sides in 1.."});
}

TEST(Arrays, PixelsOfOtherTypesAreRead) {
  const Tensor labels = Tensor::from<int64_t>({1}, Shape{1});
  const auto first = [&](const Tensor& images) {
    const auto data = open_arrays(images, labels, "a");
    EXPECT_TRUE(data.ok()) << data.status().message();
    return data.ok() ? (*data)->get(0)->image.data<uint8_t>()[0] : -1;
  };
  EXPECT_EQ(first(Tensor::from<int64_t>({200}, Shape{1, 1, 1})), 200);
  EXPECT_EQ(first(Tensor::from<uint16_t>({201}, Shape{1, 1, 1})), 201);
  EXPECT_EQ(first(Tensor::from<double>({0.5}, Shape{1, 1, 1})), 128);
  const Tensor half = Tensor::from<uint16_t>({float_to_half(255)}, Shape{1, 1, 1});
  EXPECT_EQ(first(Tensor({DType::kF16, half.shape()}, half.buffer())), 255);
  expect_failure(open_arrays(Tensor::from<int16_t>({256}, Shape{1, 1, 1}), labels, "a"),
                 Code::kInvalidArgument, {"element 0 is 256", "i16", "0..255"});
}

TEST(Arrays, NpyFilesKeepTheirPixelsAlive) {
  const Folder folder;
  ASSERT_TRUE(write_npy(folder / "x.npy", ramp(Shape{2, 2, 2, 3})).ok());
  ASSERT_TRUE(write_npy(folder / "y.npy", Tensor::from<int64_t>({1, 0}, Shape{2})).ok());
  auto data = open_npy(folder / "x.npy", folder / "y.npy");
  ASSERT_TRUE(data.ok()) << data.status().message();
  const Sample sample = *(*data)->get(1);
  data->reset();
  EXPECT_EQ(sample.image.data<uint8_t>()[0], 12);
  expect_failure(open_npy(folder / "x.npy", folder / "z.npy"), Code::kNotFound, {"z.npy"});
}

}  // namespace
}  // namespace limber
