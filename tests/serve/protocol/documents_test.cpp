#include "serve/protocol/documents.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "serve/protocol/base64.h"
#include "serve/protocol/json_reader.h"
#include "serve/protocol/json_writer.h"

namespace limber {
namespace {

TEST(Documents, DescribeServerModelAndRepository) {
  EXPECT_EQ(server_json({"limber", "0.2", {"a", "b"}}),
            R"({"name":"limber","version":"0.2","extensions":["a","b"]})");
  ModelMetadata model;
  model.name = "pets";
  model.versions = {"1"};
  model.inputs = {{"x", DType::kF32, {-1, 3}}, {"n", DType::kI64, {}}};
  model.outputs = {{"y", DType::kBool, {1}}};
  model.classes = {"cat"};
  model.takes_images = true;
  EXPECT_EQ(
      model_json(model),
      R"({"name":"pets","versions":["1"],"platform":"limber_elastic","inputs":[{"name":"x","datatype":"FP32",)"
      R"("shape":[-1,3]},{"name":"n","datatype":"INT64","shape":[]}],"outputs":[{"name":"y","datatype":"BOOL",)"
      R"("shape":[1]}],"parameters":{"takes_images":true,"classes":["cat"]}})");
  EXPECT_EQ(index_json({}), "[]");
  const RepositoryEntry entries[] = {{"a", "1", "READY", ""}, {"b", "2", "UNAVAILABLE", "why"}};
  EXPECT_EQ(index_json(entries), R"([{"name":"a","version":"1","state":"READY","reason":""},)"
                                 R"({"name":"b","version":"2","state":"UNAVAILABLE","reason":"why"}])");
  EXPECT_EQ(error_json("a\nb\x01"), R"({"error":"a\nb\u0001"})");
}

TEST(Documents, ReadWhatTheRepositoryIsAsked) {
  bool ready = true;
  EXPECT_TRUE(decode_index_request("", ready).ok());
  EXPECT_FALSE(ready);
  EXPECT_TRUE(decode_index_request(R"({"repository_name":"x","ready":true})", ready).ok());
  EXPECT_TRUE(ready);
  EXPECT_EQ(decode_index_request(R"({"ready":1})", ready).message,
            "ready: expected true or false, found 1 at byte 9");
  EXPECT_TRUE(decode_load_request(" ").ok());
  EXPECT_TRUE(decode_load_request(R"({"parameters":{"config":"{}"}})").ok());
  EXPECT_EQ(decode_load_request("[]").message, "request: expected an object, found [ at byte 0");
}

TEST(JsonString, ComesBackWhateverItHolds) {
  Random random(3);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (uint64_t i = random.below(20); i > 0; --i) text += static_cast<char>(random.below(128));
    text += random.below(2) ? "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" : "";
    std::string json;
    append_json_string(json, text);
    JsonReader in(json);
    const auto back = in.string("text");
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(*back, text);
    EXPECT_TRUE(in.done());
  }
}

TEST(JsonString, IsUtf8WhateverTheBytesAre) {
  const auto written = [](std::string_view text) {
    std::string json;
    append_json_string(json, text);
    return json.substr(1, json.size() - 2);
  };
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(written("\xff"), bad);
  EXPECT_EQ(written("\xc0\x80"), bad + bad);                      // two bytes for what needs one
  EXPECT_EQ(written("\xed\xa0\x80"), bad + bad + bad);            // half a surrogate pair
  EXPECT_EQ(written("\xf4\x90\x80\x80"), bad + bad + bad + bad);  // beyond Unicode
  EXPECT_EQ(written("\xe2\x82"), bad + bad);                      // cut
}

TEST(Base64, ComesBackAndRefusesOtherText) {
  Random random(5);
  for (size_t size = 0; size < 70; ++size) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(random.below(256));
    const std::string text = encode_base64(bytes);
    EXPECT_EQ(text.size(), (size + 2) / 3 * 4);
    EXPECT_EQ(decode_base64(text), bytes);
    EXPECT_EQ(decode_base64(text.substr(0, text.find('='))), bytes);
  }
  EXPECT_EQ(encode_base64("hi"), "aGk=");
  EXPECT_EQ(decode_base64("-_-_"), decode_base64("+/+/"));
  for (const char* text : {"a", "aaaaa", "aa\na", "a=aa", "====", "aGk\xff"})
    EXPECT_EQ(decode_base64(text), std::nullopt);
}

}  // namespace
}  // namespace limber
