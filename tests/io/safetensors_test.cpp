#include "io/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace limber {
namespace {

Result<TensorFile> parse(const std::string& bytes) {
  return parse_safetensors(std::as_bytes(std::span(bytes)), nullptr);
}

std::string file(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + header + data;
}

TensorFile example() {
  TensorFile f;
  f.tensors["a"] = Tensor::from<float>({1, 2, 3, 4}, Shape{2, 2});
  f.tensors["b.scalar"] = Tensor::scalar<int64_t>(-7);
  f.tensors["c"] = Tensor::from<uint8_t>({1, 2, 3}, Shape{3});
  f.tensors["empty"] = *Tensor::zeros({DType::kF16, Shape{0, 5}});
  f.metadata["format"] = "limber";
  return f;
}

void expect_equal(const TensorFile& a, const TensorFile& b) {
  EXPECT_EQ(a.metadata, b.metadata);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const auto& [name, tensor] : a.tensors) {
    const Tensor& other = b.tensors.at(name);
    ASSERT_EQ(tensor.type(), other.type()) << name;
    EXPECT_EQ(std::memcmp(tensor.raw(), other.raw(), tensor.bytes()), 0) << name;
  }
}

TEST(Safetensors, BytesRoundTrip) {
  const auto again = parse(*format_safetensors(example()));
  ASSERT_TRUE(again.ok()) << again.status().message();
  expect_equal(example(), *again);
}

TEST(Safetensors, FilesAreMapped) {
  const std::string path = ::testing::TempDir() + "/" + std::to_string(getpid()) + ".safetensors";
  ASSERT_TRUE(write_safetensors(path, example()).ok());
  {
    const auto again = read_safetensors(path);
    ASSERT_TRUE(again.ok()) << again.status().message();
    expect_equal(example(), *again);
    EXPECT_FALSE(again->tensors.at("a").buffer()->owned());
  }
  std::filesystem::remove(path);
  EXPECT_EQ(read_safetensors(path).status().code(), Code::kNotFound);
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string whole = *format_safetensors(example());
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(parse(whole.substr(0, n)).ok()) << n;
  EXPECT_FALSE(parse(whole + "x").ok());
}

TEST(Safetensors, HostileHeadersAreRefused) {
  const std::string data(8, 'x');
  const auto entry = [](const char* dtype, const char* shape, const char* offsets) {
    return fmt::format(R"({{"t":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape, offsets);
  };
  ASSERT_TRUE(parse(file(entry(R"("F32")", "[2]", "[0,8]"), data)).ok());
  for (
      const std::string& header :
      {std::string(""),
       std::string("[]"),
       std::string("{"),
       std::string("{}"),
       std::string(R"({"t":1})"),
       std::string(R"({"t":{"dtype":"F32","shape":[2]}})"),
       std::string(R"({"__metadata__":[]})"),
       entry("1", "[2]", "[0,8]"),
       entry(R"("F32")", "{}", "[0,8]"),
       entry(R"("F32")", "[2]", "[0]"),
       entry(R"("F32")", "[-2]", "[0,8]"),
       entry(R"("F32")", "[2.5]", "[0,8]"),
       entry(R"("F32")", "[2]", "[8,0]"),
       entry(R"("F32")", "[2]", "[0,9]"),
       entry(R"("F32")", "[1]", "[0,8]"),
       entry(R"("F32")", "[1]", "[4,8]"),
       entry(R"("F32")", "[4611686018427387904,4]", "[0,0]"),
       entry(R"("F32")", "[1,1,1,1,1,1,1,1,2]", "[0,8]"),
       entry(R"("F9")", "[2]", "[0,8]"),
       entry(R"("F32")", "[2]", "[0,18446744073709551615]"),
       std::string(
           R"({"t":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"t":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}})"),
       std::string(
           R"({"t":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"u":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})"),
       std::string(100000, '[')}) {
    EXPECT_FALSE(parse(file(header, data)).ok()) << header.substr(0, 100);
  }
  std::string huge = file("{}", "");
  huge[7] = '\x7f';
  EXPECT_FALSE(parse(huge).ok());
}

TEST(Safetensors, OffsetsAreWhereTheBytesAre) {
  TensorFile f;
  f.tensors["bytes"] = Tensor::from({uint8_t{1}, uint8_t{2}, uint8_t{3}}, Shape{3});
  f.tensors["floats"] = Tensor::from({1.5F, -2.5F}, Shape{2});
  const std::string text = *format_safetensors(f);
  const auto offsets = *safetensors_offsets(f);
  ASSERT_EQ(offsets.size(), 2U);
  for (const auto& [name, at] : offsets) {
    const Tensor& tensor = f.tensors.at(name);
    ASSERT_LE(at + tensor.bytes(), text.size());
    EXPECT_EQ(std::memcmp(text.data() + at, tensor.raw(), tensor.bytes()), 0) << name;
  }
}

TEST(Safetensors, TheMetadataNameIsTaken) {
  TensorFile f;
  f.tensors["__metadata__"] = Tensor::scalar(1.0f);
  EXPECT_EQ(format_safetensors(f).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace limber
