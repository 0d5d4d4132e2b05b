#include "tensor/npy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace limber {
namespace {

Result<Tensor> parse(const std::string& bytes) { return parse_npy(std::as_bytes(std::span(bytes))); }

std::string file(const std::string& header, const std::string& data, char version = 1) {
  std::string out = "\x93NUMPY";
  out += version;
  out += '\0';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  if (version > 1) out += std::string(2, '\0');
  return out + header + data;
}

TEST(Npy, EveryTypeComesBack) {
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto dtype = static_cast<DType>(t);
    if (dtype == DType::kBF16) continue;
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{3}, Shape{2, 1, 3}}) {
      Tensor tensor = *Tensor::zeros({dtype, shape});
      for (size_t i = 0; i < tensor.bytes(); ++i) static_cast<uint8_t*>(tensor.raw())[i] = i % 2;
      const auto again = parse(*format_npy(tensor));
      ASSERT_TRUE(again.ok()) << dtype_name(dtype) << " " << again.status().message();
      ASSERT_EQ(again->type(), tensor.type());
      EXPECT_EQ(std::memcmp(again->raw(), tensor.raw(), tensor.bytes()), 0);
    }
  }
}

TEST(Npy, FilesRoundTripAndNameThemselves) {
  const std::string path = ::testing::TempDir() + "/" + std::to_string(getpid()) + ".npy";
  ASSERT_TRUE(write_npy(path, Tensor::from<float>({1, 2, 3}, Shape{3})).ok());
  const auto again = read_npy(path);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->data<float>()[2], 3);
  std::filesystem::resize_file(path, 100);
  EXPECT_NE(read_npy(path).status().message().find(path), std::string::npos);
  std::filesystem::remove(path);
  EXPECT_EQ(read_npy(path).status().code(), Code::kNotFound);
}

TEST(Npy, FortranOrderIsConverted) {
  const std::string data("\x01\x03\x05\x02\x04\x06", 6);
  const auto t = parse(file("{'descr': '|u1', 'fortran_order': True, 'shape': (3, 2), }", data));
  ASSERT_TRUE(t.ok()) << t.status().message();
  for (uint8_t i = 0; i < 6; ++i) EXPECT_EQ(t->data<uint8_t>()[i], i + 1);
}

TEST(Npy, BigEndianIsConverted) {
  const auto t = parse(file("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }",
                            std::string("\x3f\x80\0\0\xc0\0\0\0", 8)));
  ASSERT_TRUE(t.ok()) << t.status().message();
  EXPECT_EQ(t->dtype(), DType::kF32);
  EXPECT_EQ(t->data<float>()[0], 1.F);
  EXPECT_EQ(t->data<float>()[1], -2.F);
  const auto turned = parse(
      file("{'descr': '>i2', 'fortran_order': True, 'shape': (1, 2), }", std::string("\x01\x02\0\x05", 4)));
  ASSERT_TRUE(turned.ok()) << turned.status().message();
  EXPECT_EQ(turned->data<int16_t>()[0], 258);
  EXPECT_EQ(turned->data<int16_t>()[1], 5);
}

TEST(Npy, VersionsTwoAndThreeHaveLongHeaders) {
  for (const char version : {2, 3}) {
    const auto t = parse(file("{'descr': '<i2', 'fortran_order': False, 'shape': (1,)}\n", "ab", version));
    ASSERT_TRUE(t.ok()) << t.status().message();
    EXPECT_EQ(t->dtype(), DType::kI16);
  }
  EXPECT_FALSE(parse(file("{}", "", 4)).ok());
}

TEST(Npy, HostileHeadersAreRefused) {
  const std::string four(4, 'x');
  for (const char* header :
       {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1099511627776)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}"}) {
    EXPECT_FALSE(parse(file(header, four)).ok()) << header;
  }
  for (const char* descr : {"|f4", "<c8", "|S4", "|O", "<U1"}) {
    const auto t =
        parse(file(fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (1,)}}", descr), four));
    ASSERT_FALSE(t.ok());
    EXPECT_EQ(t.status().code(), Code::kUnsupported) << descr;
  }
}

TEST(Npy, EveryTruncationIsRefused) {
  const std::string whole = *format_npy(Tensor::from<float>({1, 2, 3, 4}, Shape{2, 2}));
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(parse(whole.substr(0, n)).ok()) << n;
  EXPECT_FALSE(parse(whole + "x").ok());
}

TEST(Npy, BrainFloatsHaveNoName) {
  EXPECT_EQ(format_npy(*Tensor::zeros({DType::kBF16, Shape{1}})).status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace limber
