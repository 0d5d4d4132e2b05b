// What clients get wrong, and the message that each is told.
#include <gtest/gtest.h>

#include "tests/serve/protocol/models.h"

namespace limber {
namespace {

struct Malformed {
  std::string body, message;
};

std::string decode_message(const std::string& body, std::optional<size_t> json_bytes = {}) {
  InferRequest request;
  AnswerForm form;
  const ServeStatus status = decode_infer_request({body, json_bytes, nullptr}, image_model, request, form);
  EXPECT_EQ(status.refusal, status.ok() ? Refusal::kNone : Refusal::kBadRequest);
  return status.message;
}

// An input with the given members.
std::string input(const std::string& members) { return R"({"inputs":[{)" + members + "}]}"; }
// An input "x" of that type and shape.
std::string data(const std::string& type, const std::string& shape, const std::string& values) {
  return input(R"("name":"x","datatype":")" + type + R"(","shape":)" + shape + R"(,"data":)" + values);
}

const Malformed kMalformed[] = {
    {"", "request: expected an object, found the end at byte 0"},
    {"[]", "request: expected an object, found [ at byte 0"},
    {"{", "request: expected a string, found the end at byte 1"},
    {R"({"id")", "request: expected a colon, found the end at byte 5"},
    {R"({"id":17})", "id: expected a string, found 17 at byte 6"},
    {R"({"id":"a)", "id: the text ends within a string"},
    {R"({"id":"\x"})", "id: unknown escape '\\x' in a string"},
    {R"({"id":"\ud800"})", "id: half a surrogate pair in a string"},
    {R"({"id":"\udc00"})", "id: half a surrogate pair in a string"},
    {R"({"id":"\u12"})", "id: \\u needs four hexadecimal digits"},
    {"{\"id\":\"a\nb\"}", "id: a string holds the control character 10"},
    {"{\"id\":\"\xff\"}", "id: a string is no UTF-8"},
    {"{}", "request: 'inputs' is missing; expected an array of tensors"},
    {R"({"inputs":{}})", "inputs: expected an array, found { at byte 10"},
    {R"({"inputs":[]} x)", "request: expected nothing after the object, found x at byte 14"},
    {R"({"inputs":[],"inputs":[]})", "request: 'inputs' is there twice"},
    {R"({"inputs":[1]})", "inputs[0]: expected an object, found 1 at byte 11"},
    {R"({"inputs":[],"other":tru})", "other: expected a value, found tru at byte 21"},
    {R"({"parameters":{"timeout":-5},"inputs":[]})",
     "parameters.timeout is -5; expected microseconds, 0 or more"},
    {R"({"parameters":{"timeout":1.5},"inputs":[]})",
     "parameters.timeout: expected a whole number of at most 64 bits, found 1.5 at byte 25"},
    {R"({"parameters":{"binary_data_output":1},"inputs":[]})",
     "parameters.binary_data_output: expected true or false, found 1 at byte 36"},
    {R"({"outputs":[{}],"inputs":[]})", "outputs[0]: 'name' is missing; expected an output of the model"},
    {R"({"outputs":[{"name":"y","parameters":{"classification":3}}],"inputs":[]})",
     "outputs[0].parameters.classification is not supported by this server; leave it out"},
    {R"({"outputs":[{"name":"y","parameters":{"binary_data":"yes"}}],"inputs":[]})",
     "outputs[0].parameters.binary_data: expected true or false, found \"yes\" at byte 52"},
    {input(R"("datatype":"FP32","shape":[1],"data":[1])"),
     "inputs[0]: 'name' is missing; expected an input of the model"},
    {input(R"("name":"x","shape":[1],"data":[1])"),
     "inputs[0]: 'datatype' is missing; expected BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, "
     "INT64, FP16, "
     "BF16, FP32, FP64 or BYTES"},
    {data("FLOAT", "[1]", "[1]"),
     "inputs[0].datatype is 'FLOAT'; expected BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, "
     "INT64, FP16, "
     "BF16, FP32, FP64 or BYTES"},
    {input(R"("name":"x","datatype":"FP32","data":[1])"),
     "inputs[0]: 'shape' is missing; expected an array of whole numbers"},
    {input(R"("name":"x","datatype":"FP32","shape":[1])"),
     "inputs[0]: 'data' is missing; expected an array, or parameters.binary_data_size"},
    {input(R"("name":"x","datatype":"FP32","shape":[1],"data":[1],"data":[1])"),
     "inputs[0]: 'data' is there twice"},
    {input(R"("name":"x","datatype":"FP32","shape":[1],"data":[1],"parameters":{"binary_data_size":4})"),
     "inputs[0]: both 'data' and parameters.binary_data_size; expected one of them"},
    {input(R"("name":"x","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4})"),
     "inputs[0].parameters.binary_data_size is 4; the body has 0 bytes left, as there is no "
     "Inference-Header-Content-Length"},
    {input(R"("name":"x","datatype":"FP32","shape":[1],"parameters":{"shared_memory_region":"r"})"),
     "inputs[0].parameters.shared_memory_region is not supported by this server; send the data"},
    {data("FP32", "[-1]", "[1]"), "inputs[0].shape[0] is -1; expected 0 or more"},
    {data("FP32", "[1.5]", "[1]"),
     "inputs[0].shape[0]: expected a whole number of at most 64 bits, found 1.5 at byte 50"},
    {data("FP32", "[1,1,1,1,1,1,1,1,1]", "[1]"), "inputs[0].shape: more than 8 dimensions"},
    {data("FP32", "[4294967296,4294967296]", "[1]"),
     "inputs[0].shape is [4294967296,4294967296]; its data have at most 3 elements"},
    {data("FP32", "[1000000000]", "[1]"),
     "inputs[0].shape is [1000000000]; its data have at most 3 elements"},
    {data("FP32", "[3]", "[1,2]"), "inputs[0].data: an array has 2 elements where the shape [3] asks for 3"},
    {data("FP32", "[2]", "[1,2,3]"),
     "inputs[0].data: an array has more than the 2 elements that the shape [2] asks for"},
    {data("FP32", "[2,2]", "[[1,2],[3]]"),
     "inputs[0].data: an array has 1 elements where the shape [2,2] asks for 2"},
    {data("FP32", "[2,2]", "[[1,2],3]"),
     "inputs[0].data: expected an array, as the shape has more dimensions, found 3 at byte 69"},
    {data("FP32", "[2]", "[1,[2]]"),
     "inputs[0].data: element 1: expected a number of FP32, found [2 at byte 63"},
    {data("FP32", "[2]", "[1 2]"), "inputs[0].data: expected ',' or ']', found 2 at byte 63"},
    {data("FP32", "[2]", "[1,2"), "inputs[0].data: expected ',' or ']', found } at byte 64"},
    {data("FP32", "[1]", "[NaN]"),
     "inputs[0].data: element 0: expected a number of FP32, found NaN at byte 61"},
    {data("FP32", "[1]", "[1e39]"),
     "inputs[0].data: element 0: expected a number of FP32, found 1e39 at byte 61"},
    {data("FP32", "[1]", "[null]"),
     "inputs[0].data: element 0: expected a number of FP32, found null at byte 61"},
    {data("FP16", "[1]", "[70000]"),
     "inputs[0].data: element 0: expected a number of FP16, found 70000 at byte 61"},
    {data("INT8", "[1]", "[128]"),
     "inputs[0].data: element 0: expected a number of INT8, found 128 at byte 61"},
    {data("UINT8", "[1]", "[-1]"),
     "inputs[0].data: element 0: expected a number of UINT8, found -1 at byte 62"},
    {data("INT32", "[1]", "[1.5]"),
     "inputs[0].data: element 0: expected a number of INT32, found 1.5 at byte 62"},
    {data("BOOL", "[1]", "[2]"), "inputs[0].data: element 0: expected a number of BOOL, found 2 at byte 61"},
    {data("FP32", "[1]", R"("1")"), "inputs[0].data: expected an array, found \"1\" at byte 60"},
    {data("BYTES", "[1]", R"(["aGk="])"),
     "inputs[0].name is 'x'; encoded images are taken by input 'image' only"},
    {input(R"("name":"image","datatype":"BYTES","shape":[1],"data":["a b"])"),
     "inputs[0].data: element 0 is 'a b'; expected the base64 of an image file"},
    {input(R"("name":"image","datatype":"BYTES","shape":[1],"data":[5])"),
     "inputs[0].data: element 0: expected a string, found 5 at byte 66"},
    {input(
         R"("name":"image","datatype":"BYTES","shape":[1],"data":["aGk="],"parameters":{"content_type":"str"})"),
     "inputs[0].parameters.content_type is 'str'; expected 'base64'"},
};

TEST(MalformedRequest, IsToldWhatIsWrongAndWhatWasExpected) {
  for (const Malformed& one : kMalformed) EXPECT_EQ(decode_message(one.body), one.message) << one.body;
}

TEST(MalformedRequest, ThatIsCutAnywhereIsRefused) {
  const std::string whole =
      R"({"id":"\u00e9","parameters":{"timeout":5,"a":[1,{"b":null}]},)"
      R"("inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[[1.5e1,-2]]}],"outputs":[{"name":"y"}]})";
  EXPECT_EQ(decode_message(whole), "");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(decode_message(whole.substr(0, size)), "") << size;
}

TEST(MalformedRequest, WithSomeBytesChangedEndsInAnAnswer) {
  const std::string whole = data("FP32", "[2,2]", "[[1,2],[3,4]]");
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char c : {'\0', '"', '[', '}', '9', '-', '\xff'}) {
      std::string changed = whole;
      changed[at] = c;
      InferRequest request;
      AnswerForm form;
      const ServeStatus status = decode_infer_request({changed, {}, nullptr}, image_model, request, form);
      EXPECT_EQ(status.ok(), status.message.empty());
      EXPECT_TRUE(!status.ok() || request.inputs.size() == 1u) << changed;
    }
  }
}

TEST(MalformedRequest, IsNotFollowedIntoDepth) {
  const std::string deep(100000, '[');
  EXPECT_EQ(decode_message(R"({"other":)" + deep), "other: nested more than 32 deep");
  EXPECT_EQ(decode_message(data("FP32", "[1]", deep)),
            "inputs[0].data: element 0: expected a number of FP32, found " + std::string(40, '[') +
                "... at byte 61");
}

TEST(MalformedRequest, HasNoMoreInputsThanAllowed) {
  std::string body = R"({"inputs":[)";
  for (int i = 0; i < 65; ++i) {
    body += i > 0 ? "," : "";
    body += R"({"name":"x)" + std::to_string(i) + R"(","datatype":"FP32","shape":[1],"data":[1]})";
  }
  EXPECT_EQ(decode_message(body + "]}"), "inputs: more than 64");
}

TEST(MalformedRequest, NamesAnInputOnce) {
  const std::string one = R"({"name":"x","datatype":"FP32","shape":[1],"data":[1]})";
  EXPECT_EQ(decode_message(R"({"inputs":[)" + one + "," + one + "]}"), "inputs[1].name: 'x' is there twice");
}

TEST(MalformedRequest, OfBinaryTensorsIsMeasuredFirst) {
  const auto message = [](const std::string& shape, int64_t size, const std::string& tail,
                          size_t beyond = 0) {
    const std::string json = input(R"("name":"x","datatype":"FP32","shape":)" + shape +
                                   R"(,"parameters":{"binary_data_size":)" + std::to_string(size) + "}");
    return decode_message(json + tail, json.size() + beyond);
  };
  EXPECT_EQ(message("[1]", 4, "1234"), "");
  EXPECT_EQ(message("[1]", 4, "123"),
            "inputs[0].parameters.binary_data_size is 4; the body has 3 bytes left");
  EXPECT_EQ(message("[1]", -4, "1234"),
            "inputs[0].parameters.binary_data_size is -4; the body has 4 bytes left");
  EXPECT_EQ(message("[1]", 4, "12345"),
            "the body has 5 bytes behind its JSON; the inputs' binary_data_size add up to 4");
  EXPECT_EQ(message("[3]", 4, "1234"),
            "inputs[0].parameters.binary_data_size is 4; FP32 of shape [3] needs 12");
  EXPECT_EQ(message("[4294967296,4294967296]", 4, "1234"),
            "inputs[0].parameters.binary_data_size is 4; FP32 of shape [4294967296,4294967296] needs more "
            "than this "
            "server takes");
  EXPECT_EQ(message("[1]", 4, "", 9), "Inference-Header-Content-Length is 100; the body has only 91 bytes");
}

TEST(MalformedRequest, OfBinaryImagesIsMeasuredFirst) {
  const auto message = [](const std::string& shape, const std::string& tail) {
    const std::string json =
        input(R"("name":"image","datatype":"BYTES","shape":)" + shape +
              R"(,"parameters":{"binary_data_size":)" + std::to_string(tail.size()) + "}");
    return decode_message(json + tail, json.size());
  };
  using namespace std::string_literals;
  EXPECT_EQ(message("[2]", "\x02\0\0\0hi\x01\0\0\0x"s), "");
  EXPECT_EQ(message("[1]", "\x09\0\0\0hi"s), "inputs[0]: element 0 has 9 bytes by its length; 6 are left");
  EXPECT_EQ(message("[1]", "\xff\xff\xff\xffhi"s),
            "inputs[0]: element 0 has 4294967295 bytes by its length; 6 are left");
  EXPECT_EQ(message("[1]", "\x01\0\0\0hi"s), "inputs[0]: 1 bytes are left after its 1 elements");
  EXPECT_EQ(message("[1]", "\0\0\0\0"s), "inputs[0]: element 0 is empty; expected an image file");
  EXPECT_EQ(message("[1000]", "\x01\0\0\0h"s), "inputs[0].shape is [1000]; its data have at most 1 elements");
}

TEST(MalformedRequest, WithImagesForAModelThatTakesNoneOrIsNotThere) {
  const std::string body = input(R"("name":"x","datatype":"BYTES","shape":[1],"data":["aGk="])");
  InferRequest request;
  AnswerForm form;
  EXPECT_EQ(decode_infer_request({body, {}, nullptr}, number_model, request, form).message,
            "inputs[0].datatype is BYTES; model 'numbers' takes numbers and no encoded images");
  EXPECT_EQ(decode_infer_request({body, {}, nullptr}, missing_model, request, form).refusal,
            Refusal::kNotFound);
  EXPECT_EQ(decode_image_request("GIF8", number_model, request).message,
            "the body is an image; model 'numbers' takes numbers and no encoded images");
  EXPECT_EQ(decode_image_request("", image_model, request).message,
            "the body is empty; expected an image file");
  EXPECT_EQ(decode_image_request("GIF8", missing_model, request).refusal, Refusal::kNotFound);
}

}  // namespace
}  // namespace limber
