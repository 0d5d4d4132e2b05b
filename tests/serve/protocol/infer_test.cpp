#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/random.h"
#include "serve/protocol/datatype.h"
#include "serve/protocol/infer_response.h"
#include "tests/serve/protocol/models.h"

namespace limber {
namespace {

struct Decoded {
  ServeStatus status;
  InferRequest request;
  AnswerForm form;
};

Decoded decode(const std::string& body, std::optional<size_t> json_bytes = {},
               std::shared_ptr<const void> owner = nullptr) {
  Decoded decoded;
  decoded.request.received = 100;
  decoded.status =
      decode_infer_request({body, json_bytes, std::move(owner)}, image_model, decoded.request, decoded.form);
  return decoded;
}

void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.type(), b.type());
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0) << a.type().to_string();
}

// Any bits but those of NaN and infinity.
Tensor random_tensor(Random& random, DType dtype) {
  std::vector<int64_t> dims(random.below(4));
  for (int64_t& dim : dims) dim = static_cast<int64_t>(random.below(5));
  auto tensor = Tensor::allocate({dtype, Shape::of(dims)});
  auto* bytes = static_cast<uint8_t*>(tensor->raw());
  const size_t size = dtype_size(dtype);
  for (int64_t i = 0; i < tensor->elements(); ++i) {
    do {
      for (size_t b = 0; b < size; ++b) {
        const uint64_t bits = random.below(256);
        bytes[static_cast<size_t>(i) * size + b] =
            static_cast<uint8_t>(dtype == DType::kBool ? bits % 2 : bits);
      }
    } while (is_float(dtype) && !std::isfinite(element_as_double(*tensor, i)));
  }
  return *std::move(tensor);
}

TEST(InferRequest, OfEveryTypeComesThroughJsonAndBinaryBitForBit) {
  Random random(7);
  for (int round = 0; round < 600; ++round) {
    InferRequest request;
    request.id = "r" + std::to_string(round);
    for (int i = 0; i < 3; ++i) {
      const auto dtype = static_cast<DType>((round + 5 * i) % kDTypeCount);
      request.inputs.push_back({"x" + std::to_string(i), random_tensor(random, dtype), {}});
    }
    const bool binary = round % 2 == 1;
    const EncodedRequest encoded = encode_infer_request(request, binary, {});
    const Decoded got = decode(encoded.bytes, encoded.json_bytes);
    ASSERT_TRUE(got.status.ok()) << got.status.message;
    EXPECT_EQ(got.request.id, request.id);
    ASSERT_EQ(got.request.inputs.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(got.request.inputs[i].name, request.inputs[i].name);
      expect_same(got.request.inputs[i].tensor, request.inputs[i].tensor);
    }
  }
}

TEST(InferRequest, TakesNestedAndFlatDataAndMembersInAnyOrder) {
  const Tensor want = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  for (const char* body : {
           R"({"inputs":[{"name":"x","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]}]})",
           R"({"inputs":[{"data":[[1,2,3],[4,5,6]],"datatype":"FP32","shape":[2,3],"name":"x"}]})",
           "\t{ \"inputs\" : [ { \"name\" : \"x\" , \"shape\" : [ 2 , 3 ] , \"datatype\":\"FP32\",\r\n"
           "\"data\" : [ [ 1 , 2.0 , 3e0 ] , [ 0.4e1, 50E-1 , 6 ] ] } ] } \n",
       }) {
    const Decoded got = decode(body);
    ASSERT_TRUE(got.status.ok()) << got.status.message;
    expect_same(got.request.inputs[0].tensor, want);
  }
}

TEST(InferRequest, KeepsNumbersThatAreTooSmallAsTheNearest) {
  const Decoded got = decode(
      R"({"inputs":[{"name":"x","datatype":"FP32","shape":[5],"data":[1e-45,1e-60,-1e-400,3.4028235e38,1e-39]}]})");
  ASSERT_TRUE(got.status.ok()) << got.status.message;
  expect_same(got.request.inputs[0].tensor,
              Tensor::from<float>({1e-45f, 0, -0.0f, std::numeric_limits<float>::max(), 1e-39f}, {5}));
}

// Rounding is right also where it is close: strtof says how.
TEST(InferRequest, ReadsTheNearestFloat) {
  Random random(11);
  for (int round = 0; round < 20000; ++round) {
    const auto bits = static_cast<uint32_t>(random.next() & 0x7fffffff);
    const float one = std::bit_cast<float>(round % 3 == 0 ? 0x30000000 + bits % 0x20000000 : bits);
    if (!std::isfinite(one) || one > 1e30f) continue;
    // Between a float and the next, in the middle, just beside it, and in forms people write.
    const double middle = (static_cast<double>(one) + std::nextafter(one, INFINITY)) / 2;
    const std::string texts[] = {fmt::format("{}", one),
                                 fmt::format("{}", middle),
                                 fmt::format("{:.17f}", one),
                                 fmt::format("{:.40f}", middle),
                                 fmt::format("{:.12f}", middle * (1 + 1e-16)),
                                 fmt::format("-{:.7e}", one),
                                 fmt::format("{:.0f}", one)};
    std::string data;
    for (const std::string& text : texts) data += (data.empty() ? "" : ",") + text;
    const Decoded got =
        decode(R"({"inputs":[{"name":"x","datatype":"FP32","shape":[7],"data":[)" + data + "]}]}");
    ASSERT_TRUE(got.status.ok()) << got.status.message << data;
    for (size_t i = 0; i < std::size(texts); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(got.request.inputs[0].tensor.data<float>()[i]),
                std::bit_cast<uint32_t>(std::strtof(texts[i].c_str(), nullptr)))
          << texts[i];
  }
}

TEST(InferRequest, ReadsScalarsAndEmptyTensors) {
  const Decoded got =
      decode(R"({"inputs":[{"name":"a","datatype":"INT64","shape":[],"data":-9223372036854775808},)"
             R"({"name":"b","datatype":"UINT64","shape":[],"data":[18446744073709551615]},)"
             R"({"name":"c","datatype":"FP32","shape":[0,3],"data":[]},)"
             R"({"name":"d","datatype":"BOOL","shape":[4],"data":[true,false,1,0]}]})");
  ASSERT_TRUE(got.status.ok()) << got.status.message;
  EXPECT_EQ(got.request.inputs[0].tensor.data<int64_t>()[0], std::numeric_limits<int64_t>::min());
  EXPECT_EQ(got.request.inputs[1].tensor.data<uint64_t>()[0], std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(got.request.inputs[2].tensor.elements(), 0);
  EXPECT_TRUE(got.request.inputs[3].tensor.data<bool>()[2]);
}

TEST(InferRequest, SaysWhenItIsTooLateAndWhatIsWanted) {
  const Decoded got = decode(
      R"({"id":"\u00e9\ud83d\ude00\n","parameters":{"timeout":2500,"binary_data_output":true,"other":{"a":[1]}},)"
      R"("inputs":[],"outputs":[{"name":"a"},{"name":"b","parameters":{"binary_data":false}}]})");
  ASSERT_TRUE(got.status.ok()) << got.status.message;
  EXPECT_EQ(got.request.id, "\xc3\xa9\xf0\x9f\x98\x80\n");
  EXPECT_DOUBLE_EQ(got.request.deadline, 100.0025);
  EXPECT_EQ(got.request.outputs, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(got.form.binary_of("a"));
  EXPECT_FALSE(got.form.binary_of("b"));
  EXPECT_TRUE(got.form.binary_of("c"));
  EXPECT_TRUE(std::isinf(decode(R"({"inputs":[],"parameters":{"timeout":0}})").request.deadline));
}

TEST(InferRequest, TakesImagesInJsonAndBinary) {
  using namespace std::string_literals;
  const std::string file = "\x89PNG\r\n\0\xff"s;
  for (const bool binary : {false, true}) {
    InferRequest request;
    request.inputs.push_back({"image", {}, {file, "x"}});
    const EncodedRequest encoded = encode_infer_request(request, binary, {});
    const Decoded got = decode(encoded.bytes, encoded.json_bytes);
    ASSERT_TRUE(got.status.ok()) << got.status.message;
    EXPECT_FALSE(got.request.inputs[0].tensor.valid());
    EXPECT_EQ(got.request.inputs[0].images, request.inputs[0].images);
  }
  const Decoded page =
      decode(R"({"inputs":[{"name":"image","datatype":"BYTES","shape":[1,1],)"
             R"("parameters":{"content_type":"base64"},"data":[["data:image/png;base64,aGk"]]}]})");
  ASSERT_TRUE(page.status.ok()) << page.status.message;
  EXPECT_EQ(page.request.inputs[0].images, std::vector<std::string>{"hi"});
}

TEST(InferRequest, BorrowsBinaryTensorsThatLieAligned) {
  InferRequest request;
  request.inputs.push_back({"x", Tensor::from<float>({1, 2, 3}, {3}), {}});
  request.inputs.push_back({"flag", Tensor::from<bool>({true}, {1}), {}});
  request.inputs.push_back({"odd", Tensor::from<float>({4, 5}, {2}), {}});
  const EncodedRequest encoded = encode_infer_request(request, true, {});
  const size_t pad = Buffer::kAlignment - *encoded.json_bytes % Buffer::kAlignment;
  const auto buffer = *Buffer::allocate(pad + encoded.bytes.size());
  char* bytes = reinterpret_cast<char*>(buffer->data()) + pad;
  std::memcpy(bytes, encoded.bytes.data(), encoded.bytes.size());
  InferRequest got;
  AnswerForm form;
  const InferBody body{{bytes, encoded.bytes.size()}, encoded.json_bytes, buffer};
  ASSERT_TRUE(decode_infer_request(body, image_model, got, form).ok());
  const auto within = [&](const Tensor& tensor) {
    const auto* at = static_cast<const char*>(tensor.raw());
    return at >= bytes && at < bytes + encoded.bytes.size();
  };
  EXPECT_TRUE(within(got.inputs[0].tensor));
  EXPECT_FALSE(within(got.inputs[1].tensor));  // a bool is always checked and copied
  EXPECT_FALSE(within(got.inputs[2].tensor));  // one byte behind: not aligned
  for (size_t i = 0; i < 3; ++i) expect_same(got.inputs[i].tensor, request.inputs[i].tensor);
}

TEST(InferRequest, MakesTrueOfEveryByteThatIsNotZero) {
  const std::string json =
      R"({"inputs":[{"name":"x","datatype":"BOOL","shape":[2],"parameters":{"binary_data_size":2}}]})";
  const Decoded got = decode(json + std::string("\x07\0", 2), json.size());
  ASSERT_TRUE(got.status.ok()) << got.status.message;
  expect_same(got.request.inputs[0].tensor, Tensor::from<bool>({true, false}, {2}));
}

TEST(InferResponse, SaysWhatComputedIt) {
  InferResponse response;
  response.model = "a\"b";
  response.version = "3";
  response.id = "\xff";
  response.variant = "tiny";
  response.queue_s = 0.25;
  response.compute_s = 1e-7;
  response.outputs.push_back({"y", Tensor::from<int64_t>({1, -2}, {1, 2})});
  const EncodedResponse encoded = encode_infer_response(response, {});
  EXPECT_FALSE(encoded.binary);
  EXPECT_EQ(
      encoded.json,
      "{\"model_name\":\"a\\\"b\",\"model_version\":\"3\",\"id\":\"\xef\xbf\xbd\",\"parameters\":{"
      "\"variant\":"
      "\"tiny\",\"queue_s\":0.25,\"compute_s\":1e-07},\"outputs\":[{\"name\":\"y\",\"datatype\":\"INT64\","
      "\"shape\":[1,2],\"data\":[1,-2]}]}");
}

TEST(InferResponse, MixesJsonAndBinaryAsAsked) {
  InferResponse response;
  response.outputs.push_back({"a", Tensor::from<float>({1}, {1})});
  response.outputs.push_back({"b", Tensor::from<float>({2, 3}, {2})});
  AnswerForm form;
  form.binary = true;
  form.outputs = {{"a", false}};
  const EncodedResponse encoded = encode_infer_response(response, form);
  EXPECT_TRUE(encoded.binary);
  ASSERT_EQ(encoded.tail.size(), 1u);
  expect_same(encoded.tail[0], response.outputs[1].tensor);
  EXPECT_EQ(encoded.size(), encoded.json.size() + 8);
  EXPECT_NE(encoded.json.find(R"("shape":[1],"data":[1]})"), std::string::npos);
  EXPECT_NE(encoded.json.find(R"("shape":[2],"parameters":{"binary_data_size":8}})"), std::string::npos);
}

TEST(InferResponse, HasNullWhereJsonHasNoNumber) {
  InferResponse response;
  const float inf = std::numeric_limits<float>::infinity();
  response.outputs.push_back({"y", Tensor::from<float>({std::nanf(""), inf, -inf, 0.1f}, {4})});
  EXPECT_NE(encode_infer_response(response, {}).json.find(R"("data":[null,null,null,0.1])"),
            std::string::npos);
}

TEST(Datatype, NamesEveryType) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_datatype(datatype_name(dtype)), dtype);
    EXPECT_NE(kDatatypeList.find(datatype_name(dtype)), std::string_view::npos);
  }
  EXPECT_EQ(parse_datatype("fp32"), std::nullopt);
}

}  // namespace
}  // namespace limber
