// Messages to requests and back, without a server.
#include "serve/grpc/messages.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "build_request.h"

namespace limber {
namespace {

using inference::ModelInferRequest;
using testing::add_input, testing::four_floats, testing::raw_bytes, testing::raw_request,
    testing::with_length;
using namespace std::string_literals;

Result<InferRequest> read(ModelInferRequest message, std::string_view image_input = "") {
  return read_infer_request(message, image_input, 100);
}

std::string refusal(const ModelInferRequest& message, std::string_view image_input = "") {
  const auto request = read(message, image_input);
  EXPECT_FALSE(request.ok());
  if (request.ok()) return "";
  EXPECT_EQ(request.status().code(), Code::kInvalidArgument);
  return request.status().message();
}

ModelInferRequest typed(const std::string& datatype, const std::vector<int64_t>& shape) {
  ModelInferRequest request;
  request.set_model_name("m");
  add_input(request, "x", datatype, shape);
  return request;
}
inference::InferTensorContents& contents(ModelInferRequest& request) {
  return *request.mutable_inputs(0)->mutable_contents();
}

template <typename T>
void expect_raw(const std::string& datatype, DType dtype, const std::vector<T>& values) {
  const auto count = static_cast<int64_t>(values.size());
  const auto request = read(raw_request("m", datatype, {1, count}, raw_bytes(values)));
  ASSERT_TRUE(request.ok()) << request.status().message();
  const Tensor& tensor = request->inputs.at(0).tensor;
  EXPECT_EQ(tensor.type(), (TensorType{dtype, Shape{1, count}})) << datatype;
  EXPECT_EQ(std::memcmp(tensor.raw(), values.data(), values.size() * sizeof(T)), 0) << datatype;
  EXPECT_TRUE(tensor.is_aligned());
  EXPECT_EQ(grpc_datatype(dtype), datatype);
}

TEST(GrpcMessages, RawContentsOfEveryDatatypeKeepTheirBits) {
  expect_raw<uint8_t>("BOOL", DType::kBool, {1, 0, 1});
  expect_raw<uint8_t>("UINT8", DType::kU8, {0, 255});
  expect_raw<uint16_t>("UINT16", DType::kU16, {0, 65535});
  expect_raw<uint32_t>("UINT32", DType::kU32, {0, 4294967295u});
  expect_raw<uint64_t>("UINT64", DType::kU64, {0, UINT64_MAX});
  expect_raw<int8_t>("INT8", DType::kI8, {-128, 127});
  expect_raw<int16_t>("INT16", DType::kI16, {-32768, 32767});
  expect_raw<int32_t>("INT32", DType::kI32, {INT32_MIN, INT32_MAX});
  expect_raw<int64_t>("INT64", DType::kI64, {INT64_MIN, INT64_MAX});
  expect_raw<uint16_t>("FP16", DType::kF16, {0x3c00, 0xffff});
  expect_raw<uint16_t>("BF16", DType::kBF16, {0x3f80, 0x0001});
  expect_raw<float>("FP32", DType::kF32, {-0.0f, 1.5f});
  expect_raw<double>("FP64", DType::kF64, {1e300, -2});
}

template <typename T>
void expect_typed(const ModelInferRequest& message, const std::vector<T>& values) {
  const auto request = read(message);
  ASSERT_TRUE(request.ok()) << request.status().message();
  const auto data = request->inputs.at(0).tensor.data<T>();
  EXPECT_EQ(std::vector<T>(data.begin(), data.end()), values) << message.inputs(0).datatype();
}

TEST(GrpcMessages, TypedContentsOfEveryDatatypeThatHasThemAreRead) {
  for (const auto& [name, dtype] :
       {std::pair{"INT8", DType::kI8}, std::pair{"INT16", DType::kI16}, std::pair{"INT32", DType::kI32}}) {
    ModelInferRequest request = typed(name, {2});
    contents(request).add_int_contents(-128);
    contents(request).add_int_contents(127);
    if (dtype == DType::kI8) expect_typed<int8_t>(request, {-128, 127});
    if (dtype == DType::kI16) expect_typed<int16_t>(request, {-128, 127});
    if (dtype == DType::kI32) expect_typed<int32_t>(request, {-128, 127});
  }
  for (const auto& [name, dtype] :
       {std::pair{"UINT8", DType::kU8}, std::pair{"UINT16", DType::kU16}, std::pair{"UINT32", DType::kU32}}) {
    ModelInferRequest request = typed(name, {1});
    contents(request).add_uint_contents(255);
    if (dtype == DType::kU8) expect_typed<uint8_t>(request, {255});
    if (dtype == DType::kU16) expect_typed<uint16_t>(request, {255});
    if (dtype == DType::kU32) expect_typed<uint32_t>(request, {255});
  }
  ModelInferRequest request = typed("INT64", {1});
  contents(request).add_int64_contents(INT64_MIN);
  expect_typed<int64_t>(request, {INT64_MIN});
  request = typed("UINT64", {});
  contents(request).add_uint64_contents(UINT64_MAX);
  expect_typed<uint64_t>(request, {UINT64_MAX});
  request = typed("FP32", {2, 1});
  contents(request).add_fp32_contents(1.5f);
  contents(request).add_fp32_contents(-2);
  expect_typed<float>(request, {1.5f, -2});
  request = typed("FP64", {1});
  contents(request).add_fp64_contents(1e300);
  expect_typed<double>(request, {1e300});
  request = typed("BOOL", {2});
  contents(request).add_bool_contents(true);
  contents(request).add_bool_contents(false);
  expect_typed<bool>(request, {true, false});
}

TEST(GrpcMessages, NumbersThatDoNotFitTheirDatatypeAreRefused) {
  ModelInferRequest request = typed("INT8", {2});
  contents(request).add_int_contents(5);
  contents(request).add_int_contents(128);
  EXPECT_EQ(refusal(request), "inputs[0] 'x': element 1 is 128; INT8 has -128 to 127");
  request = typed("UINT16", {1});
  contents(request).add_uint_contents(65536);
  EXPECT_EQ(refusal(request), "inputs[0] 'x': element 0 is 65536; UINT16 has 0 to 65535");
  request = raw_request("m", "BOOL", {2}, std::string("\1\2", 2));
  EXPECT_EQ(refusal(request), "inputs[0] 'image': element 1 of BOOL is 2; 0 or 1");
}

TEST(GrpcMessages, ContentsInTheWrongPlaceAreRefused) {
  ModelInferRequest request = typed("INT32", {1});
  contents(request).add_fp32_contents(1);
  EXPECT_EQ(
      refusal(request),
      "inputs[0] 'x': contents.fp32_contents has 1 values; datatype INT32 goes to contents.int_contents");
  request = typed("FP32", {3});
  contents(request).add_fp32_contents(1);
  EXPECT_EQ(refusal(request),
            "inputs[0] 'x': contents.fp32_contents has 1 values; its shape [3] wants 3, here or in "
            "raw_input_contents");
  EXPECT_EQ(refusal(typed("FP32", {2, 2})),
            "inputs[0] 'x': contents.fp32_contents has 0 values; its shape [2,2] wants 4, here or in "
            "raw_input_contents");
  EXPECT_EQ(refusal(typed("FP16", {1})),
            "inputs[0] 'x': datatype FP16 has no typed contents; send it in raw_input_contents");
  EXPECT_NE(refusal(typed("BF16", {1})).find("BF16"), std::string::npos);
  request = four_floats("m");
  contents(request).add_fp32_contents(1);
  EXPECT_EQ(refusal(request), "inputs[0] 'image': contents beside raw_input_contents; one of the two");
}

TEST(GrpcMessages, RawContentsMustFitTheShape) {
  EXPECT_EQ(refusal(raw_request("m", "FP32", {2, 3}, "12345")),
            "inputs[0] 'image': raw_input_contents of 5 bytes; FP32 of shape [2,3] has 24");
  ModelInferRequest request = four_floats("m");
  request.add_raw_input_contents("x");
  EXPECT_EQ(refusal(request), "2 raw_input_contents and 1 inputs; one for each input, or none");
}

TEST(GrpcMessages, ShapesThatCannotBeAreRefusedBeforeAnythingIsAllocated) {
  EXPECT_EQ(refusal(raw_request("m", "FP32", {1, -1}, "")), "inputs[0] 'image': shape[1] is -1; at least 0");
  EXPECT_EQ(refusal(raw_request("m", "FP32", {1, 1, 1, 1, 1, 1, 1, 1, 1}, "1234")),
            "inputs[0] 'image': shape of 9 dimensions; at most 8");
  const int64_t large = int64_t{1} << 31;
  EXPECT_EQ(refusal(raw_request("m", "FP32", {large, large, 4}, "")),
            "inputs[0] 'image': shape [2147483648,2147483648,4] has more elements than can be counted");
  EXPECT_NE(refusal(raw_request("m", "FP64", {0, INT64_MAX, INT64_MAX}, "")).find("more elements"),
            std::string::npos);
  // So many that their bytes overflow, though they themselves do not.
  EXPECT_NE(refusal(raw_request("m", "FP64", {int64_t{1} << 61}, "")).find("more elements"),
            std::string::npos);
  EXPECT_NE(refusal(raw_request("m", "FP64", {int64_t{1} << 58}, "")).find("raw_input_contents of 0 bytes"),
            std::string::npos);
  EXPECT_NE(refusal(typed("FP32", {int64_t{1} << 40})).find("0 values"), std::string::npos);
}

TEST(GrpcMessages, AnEmptyTensorIsATensor) {
  const auto request = read(raw_request("m", "FP32", {0, 3}, ""));
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->inputs[0].tensor.elements(), 0);
  EXPECT_TRUE(request->inputs[0].tensor.valid());
  EXPECT_TRUE(read(typed("INT64", {0})).ok());
}

TEST(GrpcMessages, WhatIsUnknownOrMissingIsNamed) {
  EXPECT_EQ(refusal(raw_request("m", "FP31", {1}, "")),
            "inputs[0] 'image': datatype 'FP31' is none of BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, "
            "INT32, "
            "INT64, FP16, BF16, FP32, FP64, BYTES");
  ModelInferRequest request = four_floats("");
  EXPECT_EQ(refusal(request), "model_name is empty; the name of a model");
  request.set_model_name("m");
  request.clear_inputs();
  request.clear_raw_input_contents();
  EXPECT_EQ(refusal(request), "no inputs; at least one");
  request = four_floats("m");
  request.mutable_inputs(0)->clear_name();
  EXPECT_EQ(refusal(request), "inputs[0] '': no name; inputs are given by name");
  request = four_floats("m");
  request.add_outputs();
  EXPECT_EQ(refusal(request), "outputs[0] '': no name; outputs are asked for by name");
}

TEST(GrpcMessages, LongNamesAreCutInMessagesButNotWithinACharacter) {
  ModelInferRequest request = four_floats("m");
  std::string name;
  for (int i = 0; i < 1000; ++i) name += "ä";
  request.mutable_inputs(0)->set_datatype(name);
  std::string cut;
  for (int i = 0; i < 60; ++i) cut += "ä";
  EXPECT_NE(refusal(request).find("datatype '" + cut + "...'"), std::string::npos);
}

TEST(GrpcMessages, ExtensionsThatAreNotOfferedAreRefusedNotIgnored) {
  ModelInferRequest request = four_floats("m");
  (*request.mutable_inputs(0)->mutable_parameters())["shared_memory_region"].set_string_param("r");
  EXPECT_NE(refusal(request).find("inputs[0] 'image': parameter 'shared_memory_region'"), std::string::npos);
  request = four_floats("m");
  request.add_outputs()->set_name("y");
  (*request.mutable_outputs(0)->mutable_parameters())["classification"].set_int64_param(3);
  EXPECT_NE(refusal(request).find("outputs[0] 'y': parameter 'classification'"), std::string::npos);
}

TEST(GrpcMessages, NamesVersionAndOutputsAreKept) {
  ModelInferRequest message = four_floats("m");
  message.set_model_version("7");
  message.set_id("id-1");
  message.add_outputs()->set_name("y");
  message.add_outputs()->set_name("z");
  const auto request = read(message);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->model, "m");
  EXPECT_EQ(request->version, "7");
  EXPECT_EQ(request->id, "id-1");
  EXPECT_EQ(request->outputs, (std::vector<std::string>{"y", "z"}));
  EXPECT_EQ(request->received, 100);
  EXPECT_EQ(request->deadline, std::numeric_limits<double>::infinity());
}

TEST(GrpcMessages, TimeoutCountsInMicrosecondsFromWhenTheRequestCame) {
  ModelInferRequest message = four_floats("m");
  auto& timeout = (*message.mutable_parameters())["timeout"];
  timeout.set_int64_param(250000);
  EXPECT_DOUBLE_EQ(read(message)->deadline, 100.25);
  timeout.set_uint64_param(500000);
  EXPECT_DOUBLE_EQ(read(message)->deadline, 100.5);
  timeout.set_int64_param(0);
  EXPECT_TRUE(std::isinf(read(message)->deadline));
  timeout.set_int64_param(-1);
  EXPECT_EQ(refusal(message), "parameter 'timeout' is -1; microseconds, 0 or more");
  timeout.set_string_param("10");
  EXPECT_EQ(refusal(message), "parameter 'timeout' is no int64_param; microseconds, 0 or more");
}

TEST(GrpcMessages, EncodedImagesComeRawOrTyped) {
  const std::string raw = with_length("abc") + with_length("") + with_length("de");
  ModelInferRequest message = raw_request("m", "BYTES", {3}, raw);
  EXPECT_TRUE(has_bytes_input(message));
  EXPECT_FALSE(has_bytes_input(four_floats("m")));
  auto request = read(message, "image");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->inputs[0].images, (std::vector<std::string>{"abc", "", "de"}));
  EXPECT_FALSE(request->inputs[0].tensor.valid());

  message = typed("BYTES", {2, 1});
  contents(message).add_bytes_contents("abc");
  contents(message).add_bytes_contents("de");
  request = read(message, "x");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->inputs[0].images, (std::vector<std::string>{"abc", "de"}));
}

TEST(GrpcMessages, EncodedImagesThatCannotBeAreRefused) {
  const ModelInferRequest one = raw_request("m", "BYTES", {1}, with_length("abc"));
  EXPECT_EQ(refusal(one),
            "inputs[0] 'image': datatype BYTES; this model takes no encoded images, only numbers");
  EXPECT_EQ(refusal(one, "picture"),
            "inputs[0] 'image': datatype BYTES; only input 'picture' may be given as encoded images");
  const auto raw = [](int64_t count, const std::string& bytes) {
    return refusal(raw_request("m", "BYTES", {count}, bytes), "image");
  };
  EXPECT_EQ(raw(1, "abc"),
            "inputs[0] 'image': raw_input_contents ends within the length of element 0; four bytes");
  EXPECT_EQ(raw(1, with_length("abc").substr(0, 6)),
            "inputs[0] 'image': element 0 of raw_input_contents says it has 3 bytes; 2 are left");
  EXPECT_EQ(raw(1, "\xff\xff\xff\xff"),
            "inputs[0] 'image': element 0 of raw_input_contents says it has 4294967295 bytes; 0 are left");
  EXPECT_EQ(raw(2, with_length("abc")),
            "inputs[0] 'image': raw_input_contents has 1 elements; its shape wants 2");
  EXPECT_EQ(raw(1, with_length("abc") + with_length("d")),
            "inputs[0] 'image': raw_input_contents has 5 bytes behind the 1 elements of its shape");
  EXPECT_EQ(raw(kMaxMessageParts + 1, std::string(4 * (kMaxMessageParts + 1), '\0')),
            "inputs[0] 'image': 65537 images; at most 65536");
}

Status check_bytes(const std::string& bytes) {
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()), 7);
  return check_message(stream, *ModelInferRequest::descriptor());
}

TEST(GrpcMessages, MessagesOfTooManyPartsAreNotParsed) {
  EXPECT_TRUE(check_bytes(four_floats("m").SerializeAsString()).ok());
  const auto repeated = [](const std::string& bytes, int64_t count) {
    std::string all;
    for (int64_t i = 0; i < count; ++i) all += bytes;
    return all;
  };
  EXPECT_TRUE(check_bytes(repeated("\x2a\0"s, kMaxMessageParts)).ok());
  const std::string expected =
      "a message of more than 65536 strings and messages; send fewer inputs or images at once";
  EXPECT_EQ(check_bytes(repeated("\x2a\0"s, kMaxMessageParts + 1)).message(), expected);  // empty inputs
  EXPECT_EQ(check_bytes(repeated("\x3a\0"s, kMaxMessageParts + 1)).message(),
            expected);  // empty raw contents
  EXPECT_EQ(check_bytes(repeated("\x78\1"s, kMaxMessageParts + 1)).message(),
            expected);  // of an unknown field
  // Within an input, too.
  ModelInferRequest request = typed("BYTES", {1});
  for (int64_t i = 0; i <= kMaxMessageParts; ++i) contents(request).add_bytes_contents("");
  EXPECT_EQ(check_bytes(request.SerializeAsString()).message(), expected);
  // Numbers are no parts.
  request = typed("FP32", {1});
  for (int64_t i = 0; i <= kMaxMessageParts; ++i) contents(request).add_fp32_contents(1);
  EXPECT_TRUE(check_bytes(request.SerializeAsString()).ok());
}

TEST(GrpcMessages, BytesThatAreNoMessageAreRefused) {
  // A group, a wire type that is none, field 0, a length of 2^35.
  for (const std::string& bytes : {"\x0b\x0c"s, "\x0f"s, "\x02\x01"s, "\x0a\xff\xff\xff\xff\x7f"s}) {
    EXPECT_EQ(check_bytes(bytes).message(), "the bytes are no inference.ModelInferRequest");
  }
  // An input that ends too early.
  EXPECT_EQ(check_bytes("\x2a\x05x"s).message(),
            "the bytes are no inference.ModelInferRequest.InferInputTensor");
}

TEST(GrpcMessages, TheFuzzersFilesEndInARequestOrAStatus) {
  int files = 0, requests = 0;
  for (const auto& file : std::filesystem::directory_iterator(LIMBER_ROOT "/fuzz/corpus/grpc_request")) {
    std::ifstream stream(file.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
    ModelInferRequest message;
    ASSERT_TRUE(check_bytes(bytes).ok() && message.ParseFromString(bytes)) << file.path();
    const std::string image_input = message.inputs(0).name();
    ++files;
    requests += read(message, image_input).ok();
  }
  EXPECT_GE(files, 7);
  EXPECT_EQ(requests, files - 1);  // all but large_shape
}

TEST(GrpcMessages, AnswersCarryTheirNumbersRawAndWhatComputedThem) {
  InferResponse response;
  response.model = "m";
  response.version = "3";
  response.id = "i";
  response.variant = "blocks 1";
  response.queue_s = 0.000012;
  response.compute_s = 0.5;
  response.outputs = {{"y", Tensor::from<float>({1, 2}, Shape{1, 2})},
                      {"z", Tensor::from<bool>({true}, Shape{1})}};
  inference::ModelInferResponse message;
  write_infer_response(response, message);
  EXPECT_EQ(message.model_name(), "m");
  EXPECT_EQ(message.model_version(), "3");
  EXPECT_EQ(message.id(), "i");
  EXPECT_EQ(message.parameters().at("variant").string_param(), "blocks 1");
  EXPECT_EQ(message.parameters().at("queue_us").int64_param(), 12);
  EXPECT_EQ(message.parameters().at("compute_us").int64_param(), 500000);
  ASSERT_EQ(message.outputs_size(), 2);
  EXPECT_EQ(message.outputs(0).datatype(), "FP32");
  EXPECT_EQ(message.outputs(0).shape(1), 2);
  EXPECT_EQ(message.outputs(1).datatype(), "BOOL");
  ASSERT_EQ(message.raw_output_contents_size(), 2);
  EXPECT_EQ(message.raw_output_contents(0), raw_bytes<float>({1, 2}));
  EXPECT_EQ(message.raw_output_contents(1), "\1");
}

}  // namespace
}  // namespace limber
